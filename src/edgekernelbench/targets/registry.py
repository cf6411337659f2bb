"""Targets by name: ``llvm`` is this host's CPU, ``opencl`` and ``cuda`` are devices of it."""

from __future__ import annotations

from dataclasses import dataclass

from edgekernelbench.errors import UsageError
from edgekernelbench.targets.model import Target

EXIST = (
    "targets that exist: llvm (this host), opencl (PoCL, or the first device), opencl:WORDS, "
    "cuda (the first device), cuda:WORDS, cuda-sm_87 and the like (code only)"
)


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
    if name == "cuda" or name.startswith("cuda:"):
        from edgekernelbench.targets.cuda import find_cuda

        return find_cuda(name)
    if name.startswith("cuda-"):
        from edgekernelbench.targets.gpus import cuda_target

        return cuda_target(name.removeprefix("cuda-"))
    raise UsageError(f"target {name!r} is unknown", EXIST)


@dataclass(frozen=True, slots=True)
class Listing:
    """Targets of this machine; ``missing`` says in one line each what keeps others away."""

    targets: tuple[Target, ...]
    missing: tuple[str, ...]


def list_targets() -> Listing:
    """This host, then every device of OpenCL and CUDA, under names that `find_target` takes."""
    from edgekernelbench.targets.cuda import list_cuda
    from edgekernelbench.targets.host import host_target
    from edgekernelbench.targets.opencl import list_opencl

    targets, missing = [host_target()], []
    for kind, listed in (("opencl", list_opencl), ("cuda", list_cuda)):
        try:
            targets += listed()
        except UsageError as error:
            missing.append(f"{kind}: {error.message} ({error.help})")
    return Listing(tuple(targets), tuple(missing))
