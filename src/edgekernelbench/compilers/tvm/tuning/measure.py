"""Builds candidates for the host's CPU and times them, each in a forked child."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from edgekernelbench.compilers.tvm.tuning.bench import Effort, Interface, drawn, interface_of
from edgekernelbench.compilers.tvm.tuning.forked import (
    Outcome,
    Place,
    Say,
    Work,
    run_all,
    run_pairs,
)
from edgekernelbench.targets.placement import Slot, Spreader

BUILD_S = 20.0
RUN_S = 10.0
UNSCHEDULED_S = 120.0
ROUNDS = 5
"""Of timing candidates in turn."""

_IN_TURN_S = 60.0
_REPEATS = 3
_REPEAT_MS = 20
_BUDGET_S = 1.0
HOPELESS = 3.0
"""Times the best one's time after which a candidate is not timed any closer."""

_EFFORT = Effort("llvm", population=64, generations=3, draws=5)


@dataclass(frozen=True, slots=True)
class HostBench:
    """See `bench.Bench`. ``target``: TVM's, with the number of its cores."""

    target: Any
    slot: Slot

    @property
    def threads(self) -> int:
        return len(self.slot.others)

    @property
    def effort(self) -> Effort:
        return _EFFORT

    @property
    def build_place(self) -> Place:
        return Place(self.slot.others, len(self.slot.others), BUILD_S)

    def run_place(self, seconds: float = RUN_S) -> Place:
        return Place(self.slot.timed, 1, seconds)

    def measure(self, modules: Sequence[Any], best_us: float | None) -> list[Outcome]:
        return measure([candidate_of(module) for module in modules], self, best_us)

    def in_turn(self, modules: Sequence[Any], folder: Path) -> list[float] | None:
        candidates = [candidate_of(module) for module in modules]
        paths = [folder / f"timed{n}.so" for n in range(len(candidates))]
        pairs = zip(candidates, paths, strict=True)
        builds = [partial(_export, c.module, self.target, p) for c, p in pairs]
        if any(done.error for done in run_all(builds, self.build_place)):
            return None
        programs = [(path, c.interface) for path, c in zip(paths, candidates, strict=True)]
        work: Work = partial(_in_turn, programs, self.slot.timed)
        (done,) = run_all([work], self.run_place(_IN_TURN_S))
        return None if done.error is not None else done.value

    def unscheduled(self, module: Any, file: Path) -> Outcome:
        return self._saved(module, file, UNSCHEDULED_S)

    def scheduled(self, module: Any, file: Path) -> Outcome:
        """Weights are packed within it here, so that it takes the arrays of the other."""
        return self._saved(module, file, _IN_TURN_S)

    def _saved(self, module: Any, file: Path, seconds: float) -> Outcome:
        library = file.with_suffix(".so")
        build: Work = partial(_export, module, self.target, library)
        (done,) = run_all([build], self.build_place)
        if done.error is not None:
            return done
        run: Work = partial(_save, library, interface_of(module), self.slot.timed, file)
        return run_all([run], self.run_place(seconds))[0]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A scheduled module with one function ``main``."""

    module: Any
    interface: Interface


def measure(
    candidates: Sequence[Candidate], bench: HostBench, best_us: float | None = None
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
        self.arguments = [tvm.runtime.tensor(array) for array in drawn(interface)]
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
    if best_us is not None and once * 1e6 > HOPELESS * best_us:
        return once * 1e6
    repeats = max(1, min(_REPEATS, int(_BUDGET_S / max(once, 1e-9))))
    return loaded.closely(repeats) * 1e6


def _in_turn(
    programs: Sequence[tuple[Path, Interface]], cores: Sequence[int], _say: Say
) -> list[float]:
    loaded = [Loaded(path, interface, cores) for path, interface in programs]
    rounds = [[one.closely(1) for one in loaded] for _ in range(ROUNDS)]
    return [min(times) * 1e6 for times in zip(*rounds, strict=True)]


def _save(library: Path, interface: Interface, cores: Sequence[int], file: Path, _say: Say) -> None:
    """Keeps all arguments after a call: those that are only read are the same everywhere."""
    loaded = Loaded(library, interface, cores)
    np.savez(file, *(argument.numpy() for argument in loaded.arguments))
