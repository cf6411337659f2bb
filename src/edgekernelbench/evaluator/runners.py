"""Adapters from what compilers load to what the run child calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from edgekernelbench.baselines.base import DeviceCall, DeviceRunner, Runner
from edgekernelbench.baselines.twins import check_baked, initializers


class TvmLibrary:
    """A library that `compilers.tvm.TvmCompiler` built, with its manifest beside it.

    Args:
        baked: given when the program's constants are the initializers of the twin, under their
            names there: digests of those that were baked in.
    """

    def __init__(self, folder: Path, baked: Mapping[str, str] | None = None) -> None:
        from edgekernelbench.compilers.tvm.execute import LoadedKernel

        self._kernel = LoadedKernel(folder)
        self._baked = baked

    def bind(
        self,
        inputs: Mapping[str, np.ndarray],
        consts: Mapping[str, np.ndarray],
        outputs: Mapping[str, np.ndarray],
        twin: bytes | None,
    ) -> Callable[[], None]:
        if self._baked is not None:
            if twin is None:
                raise ValueError("the program's constants are those of the twin")
            consts = initializers(twin)
            check_baked(consts, self._baked)
        return self._kernel.bind(inputs, consts, outputs)


def tvm_library(folder: Path, options: Mapping[str, Any]) -> Runner:
    """Runner factory. Option ``baked``: see `TvmLibrary`."""
    return TvmLibrary(folder, options.get("baked"))


class TvmPlan:
    """A plan that `compilers.tvm.tuning.build` wrote. ``baked``: see `TvmLibrary`."""

    def __init__(self, folder: Path, baked: Mapping[str, str] | None = None) -> None:
        from edgekernelbench.compilers.tvm.tuning.execute import LoadedPlan

        self._plan = LoadedPlan(folder)
        self._baked = baked

    def bind(
        self,
        inputs: Mapping[str, np.ndarray],
        consts: Mapping[str, np.ndarray],
        outputs: Mapping[str, np.ndarray],
        twin: bytes | None,
    ) -> Callable[[], None]:
        if self._baked is not None:
            if twin is None:
                raise ValueError("the plan's constants are those of the twin")
            consts = initializers(twin)
            check_baked(consts, self._baked)
        return self._plan.bind(inputs, consts, outputs)


def tvm_plan(folder: Path, options: Mapping[str, Any]) -> Runner:
    """Runner factory. Options: see `TvmPlan`."""
    return TvmPlan(folder, options.get("baked"))


class RelaxModel:
    """A model that `compilers.tvm.relax_build` built. ``baked``: see `TvmLibrary`."""

    def __init__(
        self, folder: Path, interface: Mapping[str, Any], baked: Mapping[str, str]
    ) -> None:
        from edgekernelbench.compilers.tvm.relax_build import RelaxInterface
        from edgekernelbench.compilers.tvm.relax_execute import LoadedRelax

        self._model = LoadedRelax(folder, RelaxInterface.model_validate(interface))
        self._baked = baked

    def bind(
        self,
        inputs: Mapping[str, np.ndarray],
        consts: Mapping[str, np.ndarray],
        outputs: Mapping[str, np.ndarray],
        twin: bytes | None,
    ) -> Callable[[], None]:
        if twin is None:
            raise ValueError("the model's constants are those of the twin")
        params = initializers(twin)
        check_baked(params, self._baked)
        return self._model.bind(inputs, params, outputs)


def relax(folder: Path, options: Mapping[str, Any]) -> Runner:
    """Runner factory. Options: see `RelaxModel`."""
    return RelaxModel(folder, options["interface"], options["baked"])


class DeviceKernel:
    """A kernel that `compilers.tvm.TvmCompiler` built for a device. ``baked``: see
    `TvmLibrary`."""

    def __init__(
        self, folder: Path, choice: Mapping[str, Any], baked: Mapping[str, str] | None = None
    ) -> None:
        from edgekernelbench.compilers.tvm.device.load import LoadedDeviceKernel
        from edgekernelbench.targets.device import chosen

        self._kernel = LoadedDeviceKernel(folder, chosen(choice))
        self._baked = baked

    def bind(
        self,
        host: np.ndarray,
        spans: Mapping[str, tuple[int, int]],
        consts: Mapping[str, np.ndarray],
        twin: bytes | None,
    ) -> DeviceCall:
        if self._baked is not None:
            if twin is None:
                raise ValueError("the program's constants are those of the twin")
            consts = initializers(twin)
            check_baked(consts, self._baked)
        return self._kernel.bind(host, spans, consts)


def device_kernel(folder: Path, options: Mapping[str, Any]) -> DeviceRunner:
    """Runner factory. Options ``device`` (see `targets.device.chosen`) and ``baked``."""
    return DeviceKernel(folder, options["device"], options.get("baked"))
