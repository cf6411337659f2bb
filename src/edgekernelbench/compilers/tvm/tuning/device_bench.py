"""Builds candidates for a device and times them on it, as kernels of authors are: by the project's
own launch plans and drivers.

Building runs side by side, timing takes turns: whoever uses the device holds a lock. One process
times all candidates of a search, since opening a device takes longer than timing a kernel; what a
broken candidate takes down with it is begun anew behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from edgekernelbench.compilers.tvm.tuning import device_runner
from edgekernelbench.compilers.tvm.tuning.bench import Effort, Interface, interface_of
from edgekernelbench.compilers.tvm.tuning.forked import Outcome, Place, Say, run_all
from edgekernelbench.compilers.tvm.tuning.measure import RUN_S, HostBench
from edgekernelbench.compilers.tvm.tuning.servant import Servant
from edgekernelbench.targets.model import Target

_EFFORT = Effort("cuda", population=32, generations=2, draws=16)
"""TVM's rules for every GPU. What verifies a candidate's blocks and shared memory takes far longer
than all there is to check of one for a CPU, and refuses most draws for some functions."""

_BUILD_S = 30.0


@dataclass(frozen=True, slots=True)
class _Built:
    """A folder with code and plan."""

    folder: Path
    interface: Interface

    def question(self, ask: str, **more: Any) -> dict[str, Any]:
        return {"ask": ask, "folders": [str(self.folder)], "interface": self.interface, **more}


class DeviceBench:
    """See `bench.Bench`. To be closed.

    Args:
        profile: of the device.
        target: TVM's for it.
        host: where functions run without a schedule.
        turn: a file; whoever uses the device holds a lock on it.
        scratch: a folder for what is built.
    """

    def __init__(
        self, profile: Target, target: Any, host: HostBench, turn: Path, scratch: Path
    ) -> None:
        self.target = target
        self._profile, self._host, self._scratch = profile, host, scratch
        self._made: dict[int, _Built | Outcome] = {}
        arguments = (profile.model_dump_json(), str(turn))
        place = Place(host.slot.timed, 1, RUN_S)
        self._servant = Servant(device_runner.__name__, arguments, place)

    @property
    def threads(self) -> int:
        return self._host.threads

    @property
    def effort(self) -> Effort:
        return _EFFORT

    def close(self) -> None:
        self._servant.close()

    def measure(self, modules: Sequence[Any], best_us: float | None) -> list[Outcome]:
        return [
            one
            if isinstance(one, Outcome)
            else self._servant.ask(one.question("measure", best_us=best_us))
            for one in self.built(modules)
        ]

    def in_turn(self, modules: Sequence[Any], folder: Path) -> list[float] | None:
        made = self.built(modules)
        built = [one for one in made if isinstance(one, _Built)]
        if len(built) < len(made):
            return None
        folders = [str(one.folder) for one in built]
        done = self._servant.ask(built[0].question("in turn") | {"folders": folders})
        return None if done.error is not None else done.value

    def unscheduled(self, module: Any, file: Path) -> Outcome:
        """By the host's CPU: no rule and no part of the device's way to code is in it."""
        return self._host.unscheduled(module, file)

    def scheduled(self, module: Any, file: Path) -> Outcome:
        (built,) = self.built([module])
        if isinstance(built, Outcome):
            return built
        return self._servant.ask(built.question("save", file=str(file)))

    def built(self, modules: Sequence[Any]) -> list[_Built | Outcome]:
        """Of each module what is to be run, or why it is not built. What was built before for this
        bench is not built again."""
        import tvm_ffi

        keys = [tvm_ffi.structural_hash(module, map_free_vars=True) for module in modules]
        new = {k: m for k, m in zip(keys, modules, strict=True) if k not in self._made}
        folders = [self._scratch / f"{key & (1 << 64) - 1:016x}" for key in new]
        for folder in folders:
            folder.mkdir()
        pairs = list(zip(new.values(), folders, strict=True))
        builds = [partial(_build, module, self._profile, folder) for module, folder in pairs]
        cpus = self._host.slot.others
        done = run_all(builds, Place(cpus, len(cpus), _BUILD_S))
        for key, outcome, (module, folder) in zip(new, done, pairs, strict=True):
            right = _Built(folder, interface_of(module))
            self._made[key] = outcome if outcome.error is not None else right
        return [self._made[key] for key in keys]


# ---------------------------------------------------------------- building
def _build(module: Any, profile: Target, folder: Path, _say: Say) -> None:
    from edgekernelbench.compilers.tvm.device import build, split

    names = [f"#{n}" for n in range(len(module["main"].params))]
    # Without its device OpenCL code is not compiled yet: the child that loads it does that.
    codeless = profile.model_copy(update={"opencl": None})
    built = build.build_device(module, {"main": names}, codeless, folder, split.split_blocks)
    if built.code is None:
        raise ValueError(built.diagnostics[0].message)
    (folder / built.library).rename(folder / device_runner.CODE)
    (folder / device_runner.PLAN).write_text(built.code.plans["main"].model_dump_json())
