"""ONNX Runtime on the task's ONNX twin, as a deployer would configure it for speed.

Graph optimisation all, intra-op threads as many as the target's, one inter-op thread, inputs and
outputs bound to arrays that stay where they are. The session is made anew for each draw of the
constants, because they are the twin's initializers; that is outside the timed call.

Spinning: ONNX Runtime's worker threads spin for some 30 ms after a call before they sleep, which
would take a core from whoever is measured next. They are told to spin for 500 us instead, which
outlasts the gaps between the calls of a sample: its own time stays the same (measured: 148 us
either way on a matrix product, 162 us without spinning), and the others' is left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from edgekernelbench.baselines.base import Materials, Recipe, Unavailable
from edgekernelbench.targets.model import Target

SPIN_US = 500


class OrtBaseline:
    """See `edgekernelbench.baselines.base.Baseline`."""

    name = "ort"
    scored = True
    version = 3

    def available(self, materials: Materials, target: Target) -> str | None:
        if target.backend != "llvm":
            return f"ONNX Runtime is run on the CPU only, not on {target.backend}"
        return None if materials.twin is not None else "the task has no ONNX twin"

    def prepare(self, materials: Materials, target: Target, folder: Path) -> Recipe | Unavailable:
        """There is nothing to build ahead; the twin must load, or there is no baseline."""
        if materials.twin is None:
            return Unavailable("the task has no ONNX twin")
        options = {"threads": target.threads, "outputs": _output_ports(materials)}
        try:
            _session(materials.twin, target.threads)
        except Exception as error:  # its exceptions have no common base
            return Unavailable(f"ONNX Runtime refuses the twin: {_first_line(error)}")
        return Recipe(
            baseline=self.name, kind="ort", route="ONNX twin", wants_twin=True, options=options
        )


BASELINE = OrtBaseline()


def _output_ports(materials: Materials) -> list[str]:
    return [port.name for port in materials.ports if port.role == "output"]


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:300] if lines else type(error).__name__


def _session(model: bytes, threads: int, cores: Sequence[int] = ()) -> Any:
    """With ``cores``, helper threads are bound to all but the first, where the caller is to run."""
    import onnxruntime

    from edgekernelbench.suite.twin import session_config

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    options.add_session_config_entry("session.intra_op.spin_duration_us", str(SPIN_US))
    for key, value in session_config(model).items():
        options.add_session_config_entry(key, value)
    if threads > 1 and len(cores) == threads:
        bound = ";".join(str(core + 1) for core in cores[1:])  # it counts processors from 1
        options.add_session_config_entry("session.intra_op_thread_affinities", bound)
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


class OrtRunner:
    """See `edgekernelbench.baselines.base.Runner`."""

    def __init__(self, folder: Path, options: Mapping[str, Any]) -> None:
        self._threads = int(options["threads"])
        self._cores: list[int] = list(options.get("cores", ()))

    def bind(
        self,
        inputs: Mapping[str, np.ndarray],
        consts: Mapping[str, np.ndarray],
        outputs: Mapping[str, np.ndarray],
        twin: bytes | None,
    ) -> Callable[[], None]:
        if twin is None:
            raise ValueError("ONNX Runtime needs the twin")
        session = _session(twin, self._threads, self._cores)
        binding = session.io_binding()
        wanted = {node.name for node in session.get_inputs()}
        for name, array in inputs.items():
            if name in wanted:
                element = array.dtype.type
                binding.bind_input(name, "cpu", 0, element, array.shape, array.ctypes.data)
        for name, array in outputs.items():
            element = array.dtype.type
            binding.bind_output(name, "cpu", 0, element, array.shape, array.ctypes.data)
        # Below the public method, which spends a microsecond on features of other devices.
        inner = getattr(session, "_sess", None)
        raw = getattr(binding, "_iobinding", None)
        if inner is None or raw is None:
            return partial(session.run_with_iobinding, binding)
        alive = (session, binding)
        return partial(_run, inner.run_with_iobinding, raw, alive)


def _run(run: Callable[[Any, None], None], binding: Any, alive: object) -> None:
    run(binding, None)
