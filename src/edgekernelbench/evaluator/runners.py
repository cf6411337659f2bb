"""Adapters from what compilers load to what the run child calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from edgekernelbench.baselines.base import Runner


class TvmLibrary:
    """A library that `compilers.tvm.TvmCompiler` built, with its manifest beside it."""

    def __init__(self, folder: Path) -> None:
        from edgekernelbench.compilers.tvm.execute import LoadedKernel

        self._kernel = LoadedKernel(folder)

    def bind(
        self,
        inputs: Mapping[str, np.ndarray],
        consts: Mapping[str, np.ndarray],
        outputs: Mapping[str, np.ndarray],
        twin: bytes | None,
    ) -> Callable[[], None]:
        return self._kernel.bind(inputs, consts, outputs)


def tvm_library(folder: Path, options: Mapping[str, Any]) -> Runner:
    """Runner factory; there are no options."""
    return TvmLibrary(folder)
