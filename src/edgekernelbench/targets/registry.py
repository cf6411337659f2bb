"""Targets by name: ``llvm`` is this host's CPU, ``opencl`` a device with an OpenCL driver."""

from __future__ import annotations

from dataclasses import dataclass

from edgekernelbench.errors import UsageError
from edgekernelbench.targets.model import Target

EXIST = "targets that exist: llvm (this host), opencl (PoCL, or the first device), opencl:WORDS"


def find_target(name: str) -> Target:
    """The target of that name.

    Raises:
        UsageError: if there is none; says which exist, or what is missing.
    """
    if name == "llvm":
        from edgekernelbench.targets.host import host_target

        return host_target()
    if name == "opencl" or name.startswith("opencl:"):
        from edgekernelbench.targets.opencl import find_opencl

        return find_opencl(name)
    reason = "is not built yet" if name == "cuda" else "is unknown"
    raise UsageError(f"target {name!r} {reason}", EXIST)


@dataclass(frozen=True, slots=True)
class Listing:
    """Targets of this machine; ``missing`` says in one line each what keeps others away."""

    targets: tuple[Target, ...]
    missing: tuple[str, ...]


def list_targets() -> Listing:
    """This host, then every OpenCL device, under names that `find_target` takes."""
    from edgekernelbench.targets.host import host_target
    from edgekernelbench.targets.opencl import list_opencl

    try:
        return Listing((host_target(), *list_opencl()), ())
    except UsageError as error:
        return Listing((host_target(),), (f"opencl: {error.message} ({error.help})",))
