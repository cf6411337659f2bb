"""The truth of a workload: its reference in float64 and exact integers, cached on disk.

The cache is a convenience, not a store: any entry may vanish or be damaged at any time and is
then computed anew. It lies under ``$EDGEKERNELBENCH_CACHE`` or the user's cache folder.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from edgekernelbench.suite.model import Arrays
from edgekernelbench.suite.patterns.registry import arguments

if TYPE_CHECKING:
    from edgekernelbench.suite.model import TensorSpec, Workload

CACHE_LIMIT = 512 * 2**20
"""Bytes that the cache may take; the entries unused longest are dropped first."""


class WrongOutput(RuntimeError):
    """A reference does not yield what its table declares: ``fault`` says so without the task."""

    def __init__(self, workload: Workload, fault: str) -> None:
        super().__init__(f"{workload.id}: {fault}")
        self.fault = fault


def compute_truth(workload: Workload, inputs: Mapping[str, np.ndarray]) -> Arrays:
    """Run the reference.

    Raises:
        WrongOutput: the reference yields a wrong number of outputs, a wrong shape, or integers
            outside of the declared dtype.
    """
    pattern = workload.definition.pattern
    widened = {spec.name: _widen(inputs[spec.name]) for spec in workload.input_specs}
    available = {**workload.sizes, **widened}
    who = f"the reference of {pattern.id}"
    with pattern.guard():
        result = pattern.reference(**arguments(pattern.reference, available, who))
    results = result if isinstance(result, tuple) else (result,)
    if len(results) != len(workload.output_specs):
        declared = ", ".join(spec.name for spec in workload.output_specs)
        fault = f"the reference yields {len(results)} outputs; declared are {declared}"
        raise WrongOutput(workload, fault)
    return {
        spec.name: _truth_of(np.asarray(values), spec, workload)
        for spec, values in zip(workload.output_specs, results, strict=True)
    }


def _widen(array: np.ndarray) -> np.ndarray:
    if array.dtype.kind == "b":
        return array
    return array.astype(np.float64 if array.dtype.kind == "f" else np.int64)


def _truth_of(values: np.ndarray, spec: TensorSpec, workload: Workload) -> np.ndarray:
    what = f"the reference's output {spec.name}"
    if values.shape != spec.shape:
        told = f"has the shape {list(values.shape)}, not {list(spec.shape)}"
        raise WrongOutput(workload, f"{what} {told}")
    if spec.dtype.is_float:
        return np.asarray(values, np.float64, order="C")  # not ascontiguousarray: 0-d stays
    stored = values.astype(spec.dtype.numpy)
    if not np.array_equal(stored, values):
        raise WrongOutput(workload, f"{what} is not representable in {spec.dtype}")
    return np.asarray(stored, order="C")


# ---------------------------------------------------------------- cache
def cache_folder() -> Path:
    """Where truths are cached; it may not exist yet."""
    chosen = os.environ.get("EDGEKERNELBENCH_CACHE")
    if chosen:
        return Path(chosen) / "truth"
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "edgekernelbench" / "truth"


def cached_truth(workload: Workload, inputs: Mapping[str, np.ndarray]) -> Arrays:
    """The truth from the cache if it is there and sound, else computed and stored."""
    file = cache_folder() / f"{truth_key(workload, inputs)}.npz"
    found = _load(file, workload)
    if found is not None:
        return found
    truth = compute_truth(workload, inputs)
    _store(file, truth)
    return truth


def truth_key(workload: Workload, inputs: Mapping[str, np.ndarray]) -> str:
    """SHA-256 (hex) over the workload, the reference's text and the inputs' bytes."""
    from edgekernelbench.suite.source import reference_source

    digest = hashlib.sha256()
    digest.update(workload.digest.encode())
    digest.update(reference_source(workload.definition.pattern).encode())
    for spec in workload.input_specs:
        array = np.ascontiguousarray(inputs[spec.name])
        digest.update(f"{spec.name}:{array.dtype.str}:{array.shape}".encode())
        digest.update(array.data)
    return digest.hexdigest()


def _load(file: Path, workload: Workload) -> Arrays | None:
    try:
        with np.load(file, allow_pickle=False) as stored:
            truth = {spec.name: stored[spec.name] for spec in workload.output_specs}
        os.utime(file)
    except (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile):
        return None
    shapes_fit = all(truth[spec.name].shape == spec.shape for spec in workload.output_specs)
    return truth if shapes_fit else None


def _store(file: Path, truth: Arrays) -> None:
    """Write beside the entry, then rename: readers see a whole entry or none."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=file.parent, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as stream:
                np.savez(stream, **truth)  # type: ignore[arg-type]
            Path(name).replace(file)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
        _prune(file.parent)
    except OSError:
        return  # a full or read-only disk costs time, not results


def _prune(folder: Path) -> None:
    entries = []
    for file in folder.iterdir():
        try:
            facts = file.stat()
        except FileNotFoundError:
            continue
        entries.append((facts.st_mtime, facts.st_size, file))
    excess = sum(size for _, size, _ in entries) - CACHE_LIMIT
    for _, size, file in sorted(entries):
        if excess <= 0:
            return
        file.unlink(missing_ok=True)
        excess -= size
