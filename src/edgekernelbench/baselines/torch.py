"""PyTorch with NVIDIA's libraries (cuBLAS, cuDNN): the task's ONNX twin, operator by operator.

What a deployer runs who has a GPU and no compiler. Eager execution of the library's own kernels;
nothing is traced, fused or tuned, and what depends on constants alone is computed beforehand.
Products of f32 are computed in f32 (no TF32), as kernels of this project do, and f16 ones are added
up in f32. Results are whole arrays of their own, not views, and stay where PyTorch puts them until
they are asked for: copying them into the task's arrays is no part of the time.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from edgekernelbench.baselines.base import DeviceCall, DeviceTimes, Materials, Recipe, Unavailable
from edgekernelbench.targets.device import CudaChoice
from edgekernelbench.targets.model import Target

_LAUNCHES_EACH = 2
"""Kernels that an operator starts, about."""


class TorchBaseline:
    """See `edgekernelbench.baselines.base.Baseline`."""

    name = "torch"
    scored = True
    version = 1

    def available(self, materials: Materials, target: Target) -> str | None:
        if target.cuda is None:
            return f"PyTorch is run on NVIDIA devices only, not on {target.name}"
        if importlib.util.find_spec("torch") is None:
            return "PyTorch is not installed (pip install torch)"
        return None if materials.twin is not None else "the task has no ONNX twin"

    def prepare(self, materials: Materials, target: Target, folder: Path) -> Recipe | Unavailable:
        """There is nothing to build ahead; every operator must have a counterpart."""
        import onnx

        from edgekernelbench.baselines.torch_ops import KNOWN

        if materials.twin is None:
            return Unavailable("the task has no ONNX twin")
        graph = onnx.load_from_string(materials.twin).graph
        unknown = sorted({node.op_type for node in graph.node} - KNOWN)
        if unknown:
            return Unavailable(f"no counterpart in PyTorch is known for {', '.join(unknown)}")
        options = {
            "inputs": {p.name: _form(p) for p in materials.ports if p.role == "input"},
            "outputs": {p.name: _form(p) for p in materials.ports if p.role == "output"},
        }
        return Recipe(
            baseline=self.name,
            kind="torch",
            route="ONNX twin, eager PyTorch",
            wants_twin=True,
            options=options,
        )


BASELINE = TorchBaseline()


def _form(port: Any) -> list[Any]:
    return [port.dtype.numpy.name, list(port.shape)]


class TorchRunner:
    """See `edgekernelbench.baselines.base.DeviceRunner`."""

    def __init__(self, folder: Path, options: Mapping[str, Any]) -> None:
        from edgekernelbench.compilers.tvm.device.cuda import open_device

        self._options = options
        self._cuda, ordinal = open_device(CudaChoice.model_validate(options["device"]))
        self._device = f"cuda:{ordinal}"

    def bind(
        self,
        host: np.ndarray,
        spans: Mapping[str, tuple[int, int]],
        consts: Mapping[str, np.ndarray],
        twin: bytes | None,
    ) -> DeviceCall:
        if twin is None:
            raise ValueError("PyTorch needs the twin")
        return _TorchCall(self._cuda, self._device, host, spans, self._options, twin)


def pin_precision(torch: Any) -> None:
    """No TF32, no sums in f16, no search for algorithms that differs from run to run."""
    torch.set_grad_enabled(False)
    torch.set_float32_matmul_precision("highest")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = False


class _TorchCall:
    """See `edgekernelbench.baselines.base.DeviceCall`."""

    def __init__(
        self,
        cuda: Any,
        device: str,
        host: np.ndarray,
        spans: Mapping[str, tuple[int, int]],
        options: Mapping[str, Any],
        twin: bytes,
    ) -> None:
        from edgekernelbench.baselines.torch_graph import TorchGraph, load_torch
        from edgekernelbench.compilers.tvm.device.stream import TimedStream

        torch = load_torch()
        pin_precision(torch)
        torch.cuda.set_device(device)
        own = torch.cuda.Stream()
        torch.cuda.set_stream(own)
        self._torch, self._host, self._spans = torch, host, tuple(spans.values())
        self._arena = torch.from_numpy(host).to(device)
        inputs = {n: self._view(spans[n], *form) for n, form in options["inputs"].items()}
        self._views = {n: self._view(spans[n], *form) for n, form in options["outputs"].items()}
        self._graph = TorchGraph(twin, inputs, device)
        self._stream = TimedStream(cuda, own.cuda_stream)
        self._flushed: Any = None
        self._results: dict[str, Any] = {}
        self.untimed(2)  # libraries load and choose their kernels when first called

    def _view(self, span: tuple[int, int], dtype: str, shape: list[int]) -> Any:
        from edgekernelbench.baselines.torch_graph import torch_dtype

        offset, size = span
        return self._arena[offset : offset + size].view(torch_dtype(dtype)).view(shape)

    def upload(self) -> None:
        for offset, size in self._spans:
            part = self._torch.from_numpy(self._host[offset : offset + size])
            self._arena[offset : offset + size].copy_(part)
        self._stream.finish()

    def flush(self, size: int) -> None:
        if self._flushed is None or self._flushed.numel() < size:
            self._flushed = self._torch.empty(size, dtype=self._torch.uint8, device="cuda")
        self._flushed.fill_(1)
        self._stream.finish()

    def untimed(self, count: int) -> None:
        for _ in range(count):
            self._call()
        self._stream.finish()

    def timed(self, count: int) -> DeviceTimes:
        launches = _LAUNCHES_EACH * max(1, self._graph.operators)
        return self._stream.timed(self._call, count, launches)

    def _call(self) -> None:
        self._results = self._graph.run()

    def download(self, into: np.ndarray) -> None:
        for name, view in self._views.items():
            result = self._results[name]
            if result.dtype != view.dtype or result.numel() != view.numel():
                raise ValueError(f"'{name}' comes out as {result.dtype}{list(result.shape)}")
            view.copy_(result.view(view.shape))
        self._torch.from_numpy(into).copy_(self._arena)
        self._stream.finish()
