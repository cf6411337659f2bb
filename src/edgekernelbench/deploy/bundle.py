"""`deploy`: a kernel becomes a folder that a device can build, test and use by itself."""

from __future__ import annotations

import contextlib
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from edgekernelbench.deploy import job as child
from edgekernelbench.deploy.architecture import OPENCL, architecture_of
from edgekernelbench.deploy.golden import Golden, of_program, of_workload
from edgekernelbench.deploy.manifest import BundleManifest
from edgekernelbench.deploy.measured import measured_in
from edgekernelbench.deploy.sources import symbol_of
from edgekernelbench.deploy.toolchain import LinkFailure, SelfTest, run_on_device, run_selftest
from edgekernelbench.deploy.write import Built, Facts, fill
from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator.building import read_manifest
from edgekernelbench.evaluator.folders import remove_folder, scratch_folder
from edgekernelbench.evaluator.forkserver import ForkServer
from edgekernelbench.evaluator.machinery import machinery
from edgekernelbench.evaluator.sandbox import Limits
from edgekernelbench.evaluator.static import Interface
from edgekernelbench.evaluator.task import as_task
from edgekernelbench.evaluator.worker import ChildLost
from edgekernelbench.ir.check import check_text
from edgekernelbench.ir.core import Program
from edgekernelbench.ir.diagnostics import Diagnostic
from edgekernelbench.ir.printer import kernel_hash
from edgekernelbench.suite.model import Workload
from edgekernelbench.targets.host import host_target
from edgekernelbench.targets.model import Target

_BUILD_S = 300.0
_BUILD_MEMORY = 6 << 30


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be deployed.

    Attributes:
        text: the kernel's file.
        target: a processor, or an OpenCL device.
        folder: to be made; it must not exist.
        workload: the kernel's task, which then gives inputs, truth and tolerance.
        constants: an ``.npz`` file with the const inputs; drawn where there is none.
        seed: decides what is drawn.
        records: a run in which the kernel was measured on the target.
        selftest: run the self-test before the bundle is handed over.
    """

    text: str
    target: Target
    folder: Path
    workload: Workload | None = None
    constants: Path | None = None
    seed: int = 0
    records: Path | None = None
    selftest: bool = False


@dataclass(frozen=True, slots=True)
class Refused:
    """The kernel is not deployed. ``status`` is a word of `evaluator.EvaluationStatus`."""

    status: str
    message: str
    diagnostics: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Deployed:
    """A finished bundle; ``selftest`` is there when it was asked for."""

    folder: Path
    manifest: BundleManifest
    selftest: SelfTest | None = None


def compile_server() -> ForkServer:
    """Where kernels are compiled; starting one takes seconds. To be closed."""
    return ForkServer(machinery(host_target().threads).servers["compile"])


def deploy(request: Request, server: ForkServer | None = None) -> Deployed | Refused:
    """Makes a bundle. The folder appears only when everything in it is finished.

    Args:
        server: a `compile_server` that many share; one of its own if left out.

    Raises:
        UsageError: the target has no bundles, the folder exists, or a file cannot be used.
    """
    architecture = architecture_of(request.target)
    if os.path.lexists(request.folder):
        raise UsageError(f"{request.folder} exists", "name a new folder with -o")
    checked = check_text(request.text)
    if checked.program is None or checked.kernel is None:
        return _invalid(checked.diagnostics, request.text)
    digest = kernel_hash(checked.kernel)
    measured = None
    if request.records is not None:
        measured = measured_in(request.records, digest, request.target.name)
    golden = _golden(request, checked.program)
    if isinstance(golden, Refused):
        return golden
    work = scratch_folder("deploy")
    try:
        with contextlib.ExitStack() as stack:
            if server is None:
                server = stack.enter_context(contextlib.closing(compile_server()))
            built = _compiled(request, golden, checked.program, work, server)
        if isinstance(built, Refused):
            return built
        if wrong := _wrong(golden, checked.program, work):
            return wrong
        workload = None if request.workload is None else request.workload.id
        facts = Facts(
            text=request.text,
            digest=digest,
            program=checked.program,
            target=request.target,
            architecture=architecture,
            golden=golden,
            seed=request.seed,
            workload=workload,
            measured=measured,
        )
        return _written(request, facts, built, work)
    finally:
        remove_folder(work)


def _invalid(found: tuple[Diagnostic, ...], text: str) -> Refused:
    dicts = tuple(d.as_dict(text) for d in found)
    return Refused("invalid_ir", _first_error(dicts), dicts)


def _golden(request: Request, program: Program) -> Golden | Refused:
    if request.workload is None:
        return of_program(program, request.seed, request.constants)
    return of_workload(request.workload, request.seed, request.constants)


# ---------------------------------------------------------------- compiling
def _compiled(
    request: Request, golden: Golden, program: Program, work: Path, server: ForkServer
) -> Built | Refused:
    workload = request.workload
    job = child.Job(
        text=request.text,
        interface=None if workload is None else Interface.of(as_task(workload)),
        target=request.target,
        host=host_target(),
        symbol=symbol_of(program.name),
        cases=len(golden.cases),
    )
    _hand_over(golden, work)
    limits = Limits(
        memory_bytes=_BUILD_MEMORY,
        cpu_seconds=int(2 * _BUILD_S) * job.host.threads,
        processes=True,
        writes=True,
        file_bytes=1 << 30,
    )
    try:
        worker = server.start(
            "edgekernelbench.deploy.job:build", job.model_dump(mode="json"), limits, work
        )
        try:
            reply = child.Reply.model_validate(worker.reply(_BUILD_S))
        finally:
            worker.close()
        if reply.outcome != "built":
            message = reply.message or _first_error(reply.diagnostics)
            return Refused(reply.outcome, message, reply.diagnostics)
        return Built(read_manifest(work), reply)
    except ChildLost as lost:
        if lost.kind == "timeout":
            return Refused("compile_timeout", f"not compiled within {_BUILD_S:g} s")
        tail = lost.log.strip().splitlines()[-1:]
        return Refused("compile_error", "; ".join([f"the compiler failed: {lost.detail}", *tail]))
    except (ValidationError, OSError) as error:
        return Refused("compile_error", f"the compiler left nothing usable: {error}")


def _first_error(diagnostics: tuple[dict[str, Any], ...]) -> str:
    errors = [d for d in diagnostics if d.get("severity") == "error"]
    return f"{errors[0]['code']}: {errors[0]['message']}" if errors else "refused"


def _hand_over(golden: Golden, work: Path) -> None:
    for name, array in golden.constants.items():
        np.save(work / child.case_file(-1, name), array)
    for number, case in enumerate(golden.cases):
        for name, array in case.inputs.items():
            np.save(work / child.case_file(number, name), array)


def _wrong(golden: Golden, program: Program, work: Path) -> Refused | None:
    """Why what the compute layer yields is not right; None if it is."""
    for number in range(len(golden.cases)):
        outputs = {}
        for tensor in program.outputs:
            array = np.load(work / child.output_file(number, tensor.name), allow_pickle=False)
            if array.shape != tensor.shape or array.dtype != tensor.dtype.numpy:
                return Refused("compile_error", f"output {tensor.name} came in another form")
            outputs[tensor.name] = array
        judged = golden.judge(number, outputs)
        if not judged.passed:
            failed = next(detail for detail in judged.outputs if not detail.passed)
            return Refused("wrong_result", f"output {failed.name}: {failed.reason}")
    return None


# ---------------------------------------------------------------- writing
def _written(request: Request, facts: Facts, built: Built, work: Path) -> Deployed | Refused:
    """Fills a folder beside the wanted one, and renames it when it is whole."""
    wanted = request.folder
    wanted.parent.mkdir(parents=True, exist_ok=True)
    folder = wanted.parent / f".{wanted.name}.{secrets.token_hex(4)}"
    folder.mkdir()
    try:
        try:
            manifest = fill(facts, built, work, folder)
        except LinkFailure as error:
            return Refused("compile_error", f"it cannot be linked: {error}")
        test = None
        if request.selftest:
            test = _selftest(folder, facts)
            if not test.passed:
                return Refused("wrong_result", f"the self-test fails:\n{test.log}")
        try:
            folder.rename(wanted)
        except OSError as error:
            raise UsageError(f"{wanted} exists", "name a new folder with -o") from error
        return Deployed(wanted, manifest, test)
    finally:
        remove_folder(folder)


def _selftest(folder: Path, facts: Facts) -> SelfTest:
    if facts.architecture is OPENCL:
        return run_on_device(folder, facts.target)
    return run_selftest(folder, facts.architecture)
