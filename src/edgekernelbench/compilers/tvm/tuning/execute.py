"""Runs plans that `build` wrote, on NumPy arrays in place, with TVM's run time only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from edgekernelbench.compilers.tvm.execute import _usable, aligned_empty, load_runtime
from edgekernelbench.compilers.tvm.tuning.plan import BAKED, LIBRARY, PLAN, Plan, Step

Arrays = Mapping[str, np.ndarray]


class LoadedPlan:
    """The plan of a folder. Life: construct, `bind` once per draw of the constants."""

    def __init__(self, folder: Path) -> None:
        load_runtime()
        import tvm_ffi

        self.plan = Plan.model_validate_json((folder / PLAN).read_bytes())
        self._library = tvm_ffi.load_module(str((folder / LIBRARY).resolve()))
        with np.load(folder / BAKED) as stored:
            self._baked = {name: _usable(stored[name]) for name in stored.files}

    def bind(self, inputs: Arrays, params: Arrays, outputs: Arrays) -> Callable[[], None]:
        """Packs the constants; the call that reads ``inputs`` where they are, fills ``outputs``.

        Raises:
            KeyError: an array is missing.
            ValueError: an array is not of the shape that a function wants.
        """
        arrays = dict(self._baked)
        arrays |= {f"input.{n}": _usable(inputs[n]) for n in self.plan.inputs}
        arrays |= {f"param.{n}": _usable(params[n]) for n in self.plan.params}
        arrays |= {f"output.{n}": outputs[n] for n in self.plan.outputs}
        for name, space in self.plan.spaces.items():
            arrays[name] = aligned_empty(space.shape, np.dtype(space.dtype))
        for step in self.plan.prepack:
            self._bound(step, arrays)()
        calls = tuple(self._bound(step, arrays) for step in self.plan.steps)
        return calls[0] if len(calls) == 1 else partial(_run, calls, arrays)

    def _bound(self, step: Step, arrays: Arrays) -> Callable[[], None]:
        import tvm_ffi

        views = [arrays[operand.name].reshape(operand.shape) for operand in step.operands]
        call = partial(self._library[step.function], *map(tvm_ffi.from_dlpack, views))
        call.kept = views  # type: ignore[attr-defined]  # the arguments point there
        return call


def _run(calls: tuple[Callable[[], Any], ...], _kept: Arrays) -> None:
    for call in calls:
        call()
