"""The compiler under rules: what a deployer gets without an author. Those for devices are DLight's
(`dlight`); those for CPUs are this project's default ones.

The very rules, lowering and code generator that a kernel without schedule and memory layers gets,
so a bare restatement of the task is worth about 1 and no more. There may be two statements to
start from: the ONNX twin as the compiler imports it, and the canonical program. An import may
carry transpositions that the rules leave in place, so where there are both, both are built and the
faster one is the baseline; which one it is, and by how much, is in the recipe. The slower one is
kept: an import may also compute in a lower precision than the task allows, which only the judge of
its results can tell.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from edgekernelbench.baselines import dlight, programs, trial, twins
from edgekernelbench.baselines.base import OTHER, Materials, Recipe, Unavailable
from edgekernelbench.targets.model import Target

RULES = "default CPU rules"
TWIN, CANONICAL = "ONNX twin", "canonical program"
MARGIN = 1.03
"""The twin is preferred unless the canonical program is faster by more than this factor."""


@dataclass(frozen=True, slots=True)
class _Build:
    """A library in a folder of its own. ``options``: see `evaluator.runners.TvmLibrary`."""

    source: str
    folder: Path
    options: dict[str, Any]
    notes: tuple[str, ...] = ()


class TvmBaseline:
    """See `edgekernelbench.baselines.base.Baseline`."""

    name = "tvm"
    scored = True
    version = 4

    def available(self, materials: Materials, target: Target) -> str | None:
        if materials.twin is None and materials.canonical is None:
            return "the task has neither an ONNX twin nor a canonical program"
        return None

    def prepare(self, materials: Materials, target: Target, folder: Path) -> Recipe | Unavailable:
        if target.backend != "llvm":
            return dlight.prepare(self.name, materials, target, folder)
        twin = _from_twin(materials, target, folder / "twin")
        canonical = _from_canonical(materials, target, folder / "canonical")
        if isinstance(twin, Unavailable) and isinstance(canonical, Unavailable):
            return Unavailable(f"{twin.reason}; {canonical.reason}")
        other = None
        if isinstance(twin, Unavailable):
            assert isinstance(canonical, _Build)
            chosen = replace(canonical, notes=(f"{TWIN}: {twin.reason}",))
        elif isinstance(canonical, Unavailable):
            chosen = replace(twin, notes=(f"{CANONICAL}: {canonical.reason}",))
        else:
            chosen = _faster(twin, canonical, materials, target)
            other = canonical if chosen.source == TWIN else twin
            other.folder.rename(folder / OTHER)
        for file in sorted(chosen.folder.iterdir()):
            file.rename(folder / file.name)
        for built in ("twin", "canonical"):
            shutil.rmtree(folder / built, ignore_errors=True)
        return self._recipe(chosen, other)

    def _recipe(self, build: _Build, other: _Build | None) -> Recipe:
        return Recipe(
            baseline=self.name,
            kind="tvm-library",
            route=_route(build),
            notes=build.notes,
            wants_twin=build.source == TWIN,
            options=build.options,
            other=None if other is None else self._recipe(other, None),
        )


BASELINE = TvmBaseline()


def _route(build: _Build) -> str:
    """The source, and for the canonical program why it is not the twin."""
    route = f"{build.source}, {RULES}"
    return route if build.source == TWIN or not build.notes else f"{route} ({build.notes[0]})"


def _from_twin(materials: Materials, target: Target, folder: Path) -> _Build | Unavailable:
    if materials.twin is None:
        return Unavailable("there is none")
    import onnx

    from edgekernelbench.compilers.tvm.lift import lift

    lifted = lift(onnx.load_from_string(materials.twin), materials.ports, materials.fixed)
    if lifted.program is None:
        return Unavailable(lifted.reason)
    kernel = programs.without_layers(lifted.program)
    folder.mkdir()
    failed = programs.compile_program(kernel, lifted.program, target, folder)
    if failed is not None:
        return failed
    baked = twins.digests(twins.initializers(materials.twin), materials.fixed)
    return _Build(TWIN, folder, {"baked": baked})


def _from_canonical(materials: Materials, target: Target, folder: Path) -> _Build | Unavailable:
    bare = programs.canonical(materials)
    if isinstance(bare, Unavailable):
        return bare
    folder.mkdir()
    failed = programs.compile_program(bare.kernel, bare.program, target, folder)
    return _Build(CANONICAL, folder, {}) if failed is None else failed


def _faster(twin: _Build, canonical: _Build, materials: Materials, target: Target) -> _Build:
    job = trial.TrialJob(folders=(twin.folder, canonical.folder), ports=materials.ports)
    reply = trial.compare(job, target.threads)
    if isinstance(reply, Unavailable):
        return replace(twin, notes=(f"{CANONICAL}: {reply.reason}",))
    first, second = reply.call_us
    if first > second * MARGIN:
        return replace(canonical, notes=(_slower(TWIN, first / second),))
    return replace(twin, notes=(_slower(CANONICAL, second / first),))


def _slower(source: str, times: float) -> str:
    return f"the {source} takes {times:.2f} times as long"
