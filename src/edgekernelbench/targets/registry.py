"""Targets by name. ``llvm`` is this host; other devices are profiles, and none ships yet."""

from __future__ import annotations

from edgekernelbench.errors import UsageError
from edgekernelbench.targets.model import Target


def find_target(name: str) -> Target:
    """The target of that name.

    Raises:
        UsageError: if there is none; says which exist.
    """
    from edgekernelbench.targets.host import host_target

    if name == "llvm":
        return host_target()
    planned = {"cuda", "opencl"}
    reason = "is not built yet" if name in planned else "is unknown"
    raise UsageError(f"target {name!r} {reason}", "targets that exist: llvm (this host)")
