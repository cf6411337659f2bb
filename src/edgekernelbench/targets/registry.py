"""Targets by name: ``llvm`` is this host's CPU, ``c`` the same by way of its C compiler, ``opencl``
and ``cuda`` are devices of it, the rest are device profiles."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from edgekernelbench.errors import UsageError
from edgekernelbench.targets.model import Target
from edgekernelbench.targets.profiles.places import Found

HERE = (
    "llvm (this host), c (this host, by its C compiler), c:PROFILE (C for a device), opencl (PoCL, "
    "or the first device), opencl:WORDS, cuda (the first device), cuda:WORDS, cuda-sm_87 and the "
    "like (code only)"
)


def find_target(name: str) -> Target:
    """The target of that name: ``llvm``, ``c``, ``opencl``, ``cuda``, the name of a profile, or the
    path of one's file.

    Raises:
        UsageError: if there is none; says which exist, or what is missing.
    """
    if name == "llvm":
        from edgekernelbench.targets.host import host_target

        return host_target()
    if name == "c":
        from edgekernelbench.targets.cc import c_target

        return c_target()
    if name.startswith("c:"):
        from edgekernelbench.targets.cc import by_c

        other = name.removeprefix("c:")
        if other.startswith("c:"):
            raise _unknown(name)
        return by_c(find_target(other))
    if name == "opencl" or name.startswith("opencl:"):
        from edgekernelbench.targets.opencl import find_opencl

        return find_opencl(name)
    if name == "cuda" or name.startswith("cuda:"):
        from edgekernelbench.targets.cuda import find_cuda

        return find_cuda(name)
    if name.startswith("cuda-"):
        from edgekernelbench.targets.gpus import cuda_target

        return cuda_target(name.removeprefix("cuda-"))
    return _profiled(name)


def _profiled(name: str) -> Target:
    from edgekernelbench.targets.profiles.places import find_profile
    from edgekernelbench.targets.profiles.resolve import target_of

    found = find_profile(name)
    if found is None:
        raise _unknown(name)
    return target_of(found.profile, str(found.file))


def _unknown(name: str) -> UsageError:
    from edgekernelbench.targets.profiles.places import profile_names

    profiles = profile_names()
    near = difflib.get_close_matches(name, ("llvm", "c", "opencl", "cuda", *profiles), 1)
    hint = f"did you mean {near[0]}? " if near else ""
    listed = f"targets that exist: {HERE}; profiles: {', '.join(profiles)}, or a path to one"
    return UsageError(f"target {name!r} is unknown", hint + listed)


@dataclass(frozen=True, slots=True)
class Listing:
    """Targets of this machine; ``missing`` says in one line each what keeps others away;
    ``profiles`` are devices that need not be here, ``problems`` say which files are none."""

    targets: tuple[Target, ...]
    missing: tuple[str, ...]
    profiles: tuple[Found, ...] = ()
    problems: tuple[str, ...] = ()


def _c_target() -> list[Target]:
    from edgekernelbench.targets.cc import c_target

    return [c_target()]


def list_targets() -> Listing:
    """This host, then every device of OpenCL and CUDA, under names that `find_target` takes; and
    the profiles that there are."""
    from edgekernelbench.targets.cuda import list_cuda
    from edgekernelbench.targets.host import host_target
    from edgekernelbench.targets.opencl import list_opencl
    from edgekernelbench.targets.profiles.places import list_profiles

    targets, missing = [host_target()], []
    for kind, listed in (("c", _c_target), ("opencl", list_opencl), ("cuda", list_cuda)):
        try:
            targets += listed()
        except UsageError as error:
            missing.append(f"{kind}: {error.message} ({error.help})")
    profiles, problems = list_profiles()
    return Listing(tuple(targets), tuple(missing), profiles, problems)
