"""A profile of a device that is here, from what its driver says and what was measured."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

import yaml

from edgekernelbench.errors import UsageError
from edgekernelbench.files import write_whole
from edgekernelbench.targets.model import Target
from edgekernelbench.targets.peaks import Peaks
from edgekernelbench.targets.profiles.load import parse_profile
from edgekernelbench.targets.profiles.schema import NAME

_HEAD = "# Written by `ekb devices probe`, which replaces it; copy it to edit it.\n"


def probed_name(target: Target) -> str:
    """What the profile of a probed target is called."""
    slug = re.sub(r"[^a-z0-9._-]+", "-", target.name.lower()).strip("-")
    return f"probed-{slug}"[:64]


def profile_text(target: Target, peaks: Peaks, name: str) -> str:
    """The profile of a target that is on this machine.

    Raises:
        UsageError: the name cannot be one of a profile.
    """
    data = {
        "version": 1,
        "name": name,
        "description": target.description or target.name,
        "backend": target.backend,
        "architecture": _architecture(target),
        "cores": target.threads if target.gpu is None else target.gpu.units,
        **_shape(target),
        "limits": _limits(target),
        "peaks": _peaks(peaks),
        "transport": {"kind": "local", "device": _words(target)},
        "sources": _sources(target, peaks),
    }
    text = _HEAD + yaml.safe_dump(_said(data), sort_keys=False, allow_unicode=True, width=96)
    parse_profile(text, name)
    return text


def check_file(file: Path) -> None:
    """Says before minutes of measuring what would be in the way after them.

    Raises:
        UsageError: the file's name is none of a profile, or it cannot be written.
    """
    if not re.fullmatch(NAME, file.stem):
        raise UsageError(
            f"{file}: a profile has the name of its file, and `{file.stem}` cannot be one",
            "small letters, digits, `.`, `_` and `-`, 64 at most: --out my-board.yaml",
        )
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=file.parent):
            pass
    except OSError as error:
        raise _unwritable(file, error) from error


def _unwritable(file: Path, error: OSError) -> UsageError:
    return UsageError(
        f"{file}: cannot be written ({error.strerror})", "name another file with --out"
    )


def write_profile(text: str, file: Path) -> None:
    """Stores a profile's text; a reader sees the old or the new file whole.

    Raises:
        UsageError: it cannot be written.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, text)
    except OSError as error:
        raise _unwritable(file, error) from error


def _said(values: dict[str, Any]) -> dict[str, Any]:
    """Without what is not known."""
    return {key: value for key, value in values.items() if value not in (None, {}, [])}


def _architecture(target: Target) -> dict[str, Any]:
    if target.on_cpu:
        features = {"mattr": list(target.mattr), "features": list(target.features)}
        return _said({"mcpu": target.mcpu, **features})
    if target.opencl is not None:
        version = re.search(r"\d\.\d", target.opencl.version)
        extensions = list(target.opencl.extensions)
        return _said({"opencl": version and version.group(), "extensions": extensions})
    return _said({"sm": target.gpu and target.gpu.arch})


def _shape(target: Target) -> dict[str, Any]:
    cpu = target.gpu is None
    return {
        "vector_bits": target.vector_bits if cpu else None,
        "caches": list(target.cache_bytes),
        "warp": None if target.gpu is None else target.gpu.warp,
        "dtypes_missing": list(target.dtypes_missing),
    }


def _limits(target: Target) -> dict[str, Any]:
    gpu = target.gpu
    of_gpu: dict[str, int | None] = (
        {} if gpu is None else {"threads": gpu.max_threads, "shared": gpu.shared_bytes}
    )
    if gpu is not None and target.backend == "cuda":
        of_gpu["shared_optin"] = gpu.shared_optin_bytes
    return _said({"memory": target.memory_bytes, "buffer": target.buffer_bytes, **of_gpu})


def _peaks(peaks: Peaks) -> list[dict[str, Any]]:
    found = [
        _said(
            {
                "of": "bandwidth",
                "rate": float(b.bytes_per_s),
                "source": "measured",
                "spread": peaks.spread.get(b.kernel),
                "working_set": b.working_set,
            }
        )
        for b in peaks.bandwidths
    ]
    rates = {"f32": peaks.flops_f32, "s8": peaks.ops_bytes, **peaks.ops}
    for dtype, rate in rates.items():
        if rate is not None:
            spread = peaks.spread.get(peaks.kernel_of(dtype))
            of = {"of": dtype, "rate": float(rate), "source": "measured", "spread": spread}
            found.append(_said(of))
    return found


def _words(target: Target) -> str:
    """Words of the device's own name, by which `resolve` finds it again."""
    name = target.description
    if target.opencl is not None:
        name = f"{target.opencl.platform} {target.opencl.name}"
    if target.cuda is not None:
        name = target.cuda.name
    words = re.sub(r"[^\w .()@+-]+", " ", name).split()
    return " ".join(words)[:200].strip()


def _sources(target: Target, peaks: Peaks) -> list[dict[str, Any]]:
    kind = "system" if target.on_cpu else "driver"
    who = "the operating system" if kind == "system" else f"its driver ({target.description})"
    when = f"{peaks.date}: {peaks.method}"
    return [
        {"of": ["*"], "kind": kind, "says": f"what {who} says of the device"},
        {"of": ["peaks"], "kind": "measured", "says": when},
    ]
