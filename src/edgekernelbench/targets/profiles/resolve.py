"""From a profile to a target: what it says, and what a driver says where the device is here."""

from __future__ import annotations

from typing import Any

from edgekernelbench.errors import UsageError
from edgekernelbench.targets.model import Gpu, Target
from edgekernelbench.targets.profiles.schema import Profile

NO_TRANSPORT = "there is no transport to the device"


def target_of(profile: Profile, where: str) -> Target:
    """The target of a profile. A device that is not here leaves one that code is generated for.

    Args:
        where: the file, for messages.

    Raises:
        UsageError: the device is not here, and the profile does not say enough without it.
    """
    if profile.transport.kind == "none":
        return _alone(profile, NO_TRANSPORT)
    here, why = _here(profile)
    if here is not None:
        return _limited(profile, here)
    try:
        return _alone(profile, f"{NO_TRANSPORT}, and it is not here: {why}")
    except _TooLittle as error:
        raise UsageError(
            f"target {profile.name!r}: {why}",
            f"its profile ({where}) leaves {error} to the driver",
        ) from error


class _TooLittle(Exception):
    """The profile leaves this to the driver."""


# ---------------------------------------------------------------- without the device
def _alone(profile: Profile, unreachable: str) -> Target:
    limits, architecture = profile.limits, profile.architecture
    gpu = None
    if profile.backend != "llvm":
        gpu = Gpu(
            arch=architecture.sm,
            max_threads=_needed(limits.threads, "limits.threads"),
            shared_bytes=_needed(limits.shared, "limits.shared"),
            warp=profile.warp or 1,
            units=_needed(profile.cores, "cores"),
            shared_optin_bytes=limits.shared_optin,
            registers=limits.registers,
            registers_block=limits.registers_block,
        )
    return Target(
        name=profile.name,
        backend=profile.backend,
        description=profile.description,
        mcpu=architecture.mcpu,
        mattr=architecture.mattr,
        features=architecture.features,
        mtriple=architecture.triple,
        threads=_needed(profile.cores, "cores"),
        vector_bits=profile.vector_bits or 128,
        cache_bytes=profile.caches or (),
        memory_bytes=_needed(limits.memory, "limits.memory"),
        buffer_bytes=limits.buffer,
        workspace_bytes=limits.workspace,
        code_bytes=limits.code,
        dtypes_missing=profile.dtypes_missing or (),
        gpu=gpu,
        peaks=tuple(peak.rated() for peak in profile.peaks),
        unreachable=unreachable,
    )


def _needed(value: int | None, key: str) -> int:
    if value is None:
        raise _TooLittle(key)
    return value


# ---------------------------------------------------------------- with it
def _here(profile: Profile) -> tuple[Target | None, str]:
    """The device in this machine, or why it is not there."""
    words = profile.transport.device or ""
    try:
        if profile.backend == "opencl":
            from edgekernelbench.targets.opencl import find_opencl

            return find_opencl(f"opencl:{_plain(words)}"), ""
        if profile.backend == "cuda":
            from edgekernelbench.targets.cuda import find_cuda

            return find_cuda(f"cuda:{_plain(words)}"), ""
    except UsageError as error:
        return None, error.message
    from edgekernelbench.targets.host import host_target

    host = host_target()
    if all(word in host.description.lower() for word in words.lower().split()):
        return host, ""
    return None, f"this host is {host.description}, not {words}"


def _plain(words: str) -> str:
    return words.replace("@", " ")


def _limited(profile: Profile, here: Target) -> Target:
    """The device that is here, kept within what the profile says: the smaller number counts."""
    limits = profile.limits
    changed: dict[str, Any] = {
        "name": profile.name,
        "description": profile.description,
        "memory_bytes": _least(limits.memory, here.memory_bytes),
        "buffer_bytes": _least(limits.buffer, here.buffer_bytes),
        "workspace_bytes": limits.workspace,
        "code_bytes": limits.code,
        "peaks": tuple(peak.rated() for peak in profile.peaks),
    }
    if profile.dtypes_missing is not None:
        both = {*profile.dtypes_missing, *here.dtypes_missing}
        changed["dtypes_missing"] = tuple(sorted(both))
    if here.gpu is None:
        changed["threads"] = _least(profile.cores, here.threads)
    else:
        changed["gpu"] = here.gpu.model_copy(
            update={
                "max_threads": _least(limits.threads, here.gpu.max_threads),
                "shared_bytes": _least(limits.shared, here.gpu.shared_bytes),
                "shared_optin_bytes": _least(limits.shared_optin, here.gpu.shared_optin_bytes),
                "registers": _least(limits.registers, here.gpu.registers),
                "registers_block": _least(limits.registers_block, here.gpu.registers_block),
            }
        )
    return here.model_copy(update=changed)


def _least(said: int | None, there: int | None) -> int | None:
    known = [value for value in (said, there) if value is not None]
    return min(known, default=None)
