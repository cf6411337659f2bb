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

from edgekernelbench.compilers.tvm.tuning.forked import Outcome, Place, Say, Work, run_pairs
from edgekernelbench.targets.placement import Slot, Spreader

BUILD_S = 20.0
RUN_S = 10.0
_REPEATS = 3
_REPEAT_MS = 20
_BUDGET_S = 1.0
_HOPELESS = 3.0
"""Times the best one's time after which a candidate is not timed any closer."""

Interface = tuple[tuple[str, tuple[int, ...]], ...]
"""Dtype and shape of each argument."""


@dataclass(frozen=True, slots=True)
class Bench:
    """Where candidates are built and timed. ``target``: TVM's, with the number of its cores."""

    target: Any
    slot: Slot

    @property
    def build_place(self) -> Place:
        return Place(self.slot.others, len(self.slot.others), BUILD_S)

    def run_place(self, seconds: float = RUN_S) -> Place:
        return Place(self.slot.timed, 1, seconds)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A scheduled module with one function ``main``."""

    module: Any
    interface: Interface


def measure(
    candidates: Sequence[Candidate], bench: Bench, best_us: float | None = None
) -> list[Outcome]:
    """Microseconds of one call of each candidate, or why there are none.

    They run one after another on cores that nothing else of this search uses meanwhile: where the
    slot has no others for building, all are built first.

    Args:
        best_us: of those measured before; what is far slower is measured only roughly.
    """
    with tempfile.TemporaryDirectory(prefix="ekb-tune-") as folder:
        pairs: list[tuple[Work, Work]] = []
        for n, candidate in enumerate(candidates):
            path = Path(folder) / f"{n}.so"
            build = partial(_export, candidate.module, bench.target, path)
            run = partial(_run, path, candidate.interface, bench.slot.timed, best_us)
            pairs.append((build, run))
        return run_pairs(pairs, bench.build_place, bench.run_place(), beside=bench.slot.apart)


def candidate_of(module: Any) -> Candidate:
    """A scheduled module as it is measured: with its weights packed beforehand, as they will be."""
    from tvm.s_tir.transform import RemoveWeightLayoutRewriteBlock

    packed = RemoveWeightLayoutRewriteBlock(skip_tensor_rewrite=True)(module)
    return Candidate(packed, interface_of(packed))


def interface_of(module: Any) -> Interface:
    """Of the function ``main``."""
    buffers = module["main"].params
    return tuple((str(b.dtype), tuple(int(n) for n in b.shape)) for b in buffers)


def export(module: Any, target: Any, library: Path) -> None:
    """Compiles a module of loop functions into a shared library."""
    import tvm

    from edgekernelbench.compilers.tvm.build import link

    triple = target.attrs.get("mtriple")
    link(tvm.tirx.build(module, target), library, None if triple is None else str(triple))


def _export(module: Any, target: Any, library: Path, _say: Say) -> None:
    export(module, target, library)


# ---------------------------------------------------------------- in the child that runs
class Loaded:
    """A library's ``main`` with arguments of its own, its threads on a core each.

    ``outputs`` of it come last in the interface; they are written by each call.
    """

    def __init__(self, path: Path, interface: Interface, cores: Sequence[int]) -> None:
        import tvm

        # Read when the first parallel loop starts the threads.
        os.environ |= {"TVM_NUM_THREADS": str(len(cores)), "TVM_BIND_THREADS": "0"}
        rng = np.random.default_rng(0)
        self.arguments = [tvm.runtime.tensor(_filled(d, shape, rng)) for d, shape in interface]
        self._module: Any = tvm.runtime.load_module(str(path))
        self._cpu = tvm.cpu()
        self._module["main"](*self.arguments)
        Spreader(cores).spread()

    def once(self) -> float:
        """Seconds of one call."""
        timer = self._module.time_evaluator("main", self._cpu, number=1, repeat=1)
        return float(timer(*self.arguments).min)

    def closely(self, repeats: int, least_ms: int = _REPEAT_MS) -> float:
        """Seconds of one call: the least of some means over at least that long."""
        timer = self._module.time_evaluator(
            "main", self._cpu, number=1, repeat=repeats, min_repeat_ms=least_ms
        )
        return float(min(timer(*self.arguments).results))


def _run(
    path: Path, interface: Interface, cores: Sequence[int], best_us: float | None, _say: Say
) -> float:
    loaded = Loaded(path, interface, cores)
    once = loaded.once()
    if best_us is not None and once * 1e6 > _HOPELESS * best_us:
        return once * 1e6
    repeats = max(1, min(_REPEATS, int(_BUDGET_S / max(once, 1e-9))))
    return loaded.closely(repeats) * 1e6


def _filled(dtype: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Ordinary numbers. Wide integers may be indices, so they are small enough for any axis."""
    kind = np.dtype(dtype)
    if kind.kind == "f":
        values: Any = rng.random(shape, dtype=np.float32) * 2 - 1
    elif kind.kind == "b" or kind.itemsize > 1:
        values = rng.integers(0, 2, shape)
    else:
        bounds = np.iinfo(kind)
        values = rng.integers(bounds.min, bounds.max + 1, max(1, math.prod(shape))).reshape(shape)
    return np.asarray(values).astype(kind)
