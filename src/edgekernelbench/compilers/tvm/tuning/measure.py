"""Builds candidates and times them, each in a forked child."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from edgekernelbench.compilers.tvm.tuning.forked import Outcome, Work, run_all

BUILD_S = 30.0
RUN_S = 10.0
_REPEATS = 3
_REPEAT_MS = 20
_BUDGET_S = 1.0

Interface = tuple[tuple[str, tuple[int, ...]], ...]
"""Dtype and shape of each argument."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A scheduled module with one function ``main``."""

    module: Any
    interface: Interface


def measure(candidates: Sequence[Candidate], target: Any, threads: int) -> list[Outcome]:
    """Microseconds of one call of each candidate, or why there are none.

    All are built first, on all cores; then they run one after another, so that no measurement
    happens beside something else.
    """
    with tempfile.TemporaryDirectory(prefix="ekb-tune-") as folder:
        paths = [Path(folder) / f"{n}.so" for n in range(len(candidates))]
        builds: list[Work] = [
            partial(export, c.module, target, path)
            for c, path in zip(candidates, paths, strict=True)
        ]
        built = run_all(builds, os.cpu_count() or 1, BUILD_S)
        outcomes = []
        for candidate, path, done in zip(candidates, paths, built, strict=True):
            if done.error is None:
                run = partial(_run, path, candidate.interface, threads)
                (done,) = run_all([run], 1, RUN_S)
            outcomes.append(done)
    return outcomes


def candidate_of(module: Any) -> Candidate:
    """A scheduled module as it is measured: with its weights packed beforehand, as they will be."""
    from tvm.s_tir.transform import RemoveWeightLayoutRewriteBlock

    packed = RemoveWeightLayoutRewriteBlock(skip_tensor_rewrite=True)(module)
    buffers = packed["main"].params
    return Candidate(packed, tuple((str(b.dtype), tuple(int(n) for n in b.shape)) for b in buffers))


def export(module: Any, target: Any, library: Path) -> None:
    """Compiles a module of loop functions into a shared library."""
    import tvm

    from edgekernelbench.compilers.tvm.build import link

    link(tvm.tirx.build(module, target), library)


def _run(path: Path, interface: Interface, threads: int) -> float:
    import tvm

    # Read when the first parallel loop starts the threads.
    os.environ |= {"TVM_NUM_THREADS": str(threads), "TVM_BIND_THREADS": "0"}
    rng = np.random.default_rng(0)
    arguments = [tvm.runtime.tensor(_filled(dtype, shape, rng)) for dtype, shape in interface]
    module = tvm.runtime.load_module(str(path))
    cpu = tvm.cpu()
    once = module.time_evaluator("main", cpu, number=1, repeat=1)(*arguments).min
    repeats = max(1, min(_REPEATS, int(_BUDGET_S / max(once, 1e-9))))
    timer = module.time_evaluator("main", cpu, number=1, repeat=repeats, min_repeat_ms=_REPEAT_MS)
    return float(min(timer(*arguments).results)) * 1e6


def _filled(dtype: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Ordinary numbers. Wide integers may be indices, so they are small enough for any axis."""
    kind = np.dtype(dtype)
    if kind.kind == "f":
        values: Any = rng.uniform(-1.0, 1.0, shape)
    elif kind.kind == "b" or kind.itemsize > 1:
        values = rng.integers(0, 2, shape)
    else:
        bounds = np.iinfo(kind)
        values = rng.integers(bounds.min, bounds.max + 1, max(1, math.prod(shape))).reshape(shape)
    return np.asarray(values).astype(kind)
