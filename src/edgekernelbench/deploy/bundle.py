"""`deploy`: a kernel becomes a folder that a device can build, test and use by itself."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import secrets
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from edgekernelbench.compilers.base import Argument, Manifest
from edgekernelbench.deploy import job as child
from edgekernelbench.deploy.architecture import Architecture, architecture_of
from edgekernelbench.deploy.golden import Golden, of_program, of_workload, rules_of
from edgekernelbench.deploy.manifest import (
    Bill,
    BundleManifest,
    File,
    GoldenFacts,
    KernelFacts,
    Prepared,
    Toolchain,
)
from edgekernelbench.deploy.measured import Measured, measured_in
from edgekernelbench.deploy.readme import readme
from edgekernelbench.deploy.sources import (
    Sources,
    function_of,
    parameters_of,
    symbol_of,
)
from edgekernelbench.deploy.toolchain import (
    CCompiler,
    SelfTest,
    find_compiler,
    prebuild,
    run_selftest,
)
from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator.building import read_manifest
from edgekernelbench.evaluator.folders import remove_folder, scratch_folder
from edgekernelbench.evaluator.forkserver import ChildLost, ForkServer
from edgekernelbench.evaluator.machinery import machinery
from edgekernelbench.evaluator.sandbox import Limits
from edgekernelbench.evaluator.static import Interface
from edgekernelbench.evaluator.task import as_task
from edgekernelbench.ir.check import check_text
from edgekernelbench.ir.core import Program
from edgekernelbench.ir.diagnostics import Diagnostic
from edgekernelbench.ir.printer import kernel_hash
from edgekernelbench.suite.correctness import TOLERANCE_VERSION
from edgekernelbench.suite.model import Workload
from edgekernelbench.targets.host import host_target
from edgekernelbench.targets.model import Target

_BUILD_S = 300.0
_BUILD_MEMORY = 6 << 30
_MOST_ARGUMENTS = 128
_FIXED = ("ekb_runtime.c", "ekb_runtime.h", "selftest.c", "selftest.h")


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be deployed.

    Attributes:
        text: the kernel's file.
        target: a processor.
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


def deploy(request: Request) -> Deployed | Refused:
    """Makes a bundle. The folder appears only when everything in it is finished.

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
        built = _compiled(request, golden, checked.program, work)
        if isinstance(built, Refused):
            return built
        if wrong := _wrong(golden, checked.program, work):
            return wrong
        facts = _Facts(request, architecture, golden, checked.program, digest, measured)
        return _written(facts, built, work)
    finally:
        remove_folder(work)


def _invalid(found: tuple[Diagnostic, ...], text: str) -> Refused:
    errors = [d for d in found if d.severity == "error"]
    message = f"{errors[0].rule.code}: {errors[0].message}" if errors else "it is no kernel"
    return Refused("invalid_ir", message, tuple(d.as_dict(text) for d in found))


def _golden(request: Request, program: Program) -> Golden | Refused:
    if request.workload is None:
        return of_program(program, request.seed, request.constants)
    return of_workload(request.workload, request.seed, request.constants)


# ---------------------------------------------------------------- compiling
@dataclass(frozen=True, slots=True)
class _Built:
    manifest: Manifest
    reply: child.Reply


def _compiled(request: Request, golden: Golden, program: Program, work: Path) -> _Built | Refused:
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
    server = ForkServer(machinery(job.host.threads).servers["compile"])
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
        return _Built(read_manifest(work), reply)
    except ChildLost as lost:
        if lost.kind == "timeout":
            return Refused("compile_timeout", f"not compiled within {_BUILD_S:g} s")
        tail = lost.log.strip().splitlines()[-1:]
        return Refused("compile_error", "; ".join([f"the compiler failed: {lost.detail}", *tail]))
    except (ValidationError, OSError) as error:
        return Refused("compile_error", f"the compiler left nothing usable: {error}")
    finally:
        server.close()


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
@dataclass(frozen=True, slots=True)
class _Facts:
    request: Request
    architecture: Architecture
    golden: Golden
    program: Program
    digest: str
    measured: Measured | None


def _written(facts: _Facts, built: _Built, work: Path) -> Deployed | Refused:
    """Fills a folder beside the wanted one, and renames it when it is whole."""
    wanted = facts.request.folder
    wanted.parent.mkdir(parents=True, exist_ok=True)
    folder = wanted.parent / f".{wanted.name}.{secrets.token_hex(4)}"
    folder.mkdir()
    try:
        manifest = _fill(facts, built, work, folder)
        test = None
        if facts.request.selftest:
            test = run_selftest(folder, facts.architecture)
            if not test.passed:
                return Refused("wrong_result", f"the self-test fails:\n{test.log}")
        try:
            folder.rename(wanted)
        except OSError as error:
            raise UsageError(f"{wanted} exists", "name a new folder with -o") from error
        return Deployed(wanted, manifest, test)
    finally:
        remove_folder(folder)


def _fill(facts: _Facts, built: _Built, work: Path, folder: Path) -> BundleManifest:
    arguments = {a.name: a for a in built.manifest.arguments}
    order = built.manifest.main_args
    if len(order) > _MOST_ARGUMENTS:
        raise UsageError(
            f"the kernel takes {len(order)} arrays, and the device's part {_MOST_ARGUMENTS}",
            "cut it into several kernels",
        )
    name, target = facts.program.name, facts.request.target
    sources = Sources(
        kernel=name,
        parameters=parameters_of([arguments[n] for n in order]),
        prepared=_prepared(built.reply, arguments),
        arguments=order,
        target=f"{target.name} ({target.mcpu or facts.architecture.name})",
    )
    _write_sources(facts, sources, folder)
    (folder / "lib").mkdir()
    _take(work / child.OBJECT, folder / "lib" / f"{name}.o")
    if sources.prepared:
        _take(work / child.CONSTANTS, folder / child.CONSTANTS)
    _write_golden(facts.golden, sources, folder)
    toolchain = _toolchain(facts, built, sources, folder)
    manifest = _manifest(facts, built, sources, toolchain, folder)
    (folder / "README.md").write_text(readme(manifest, sources.prototype(), facts.architecture))
    manifest = manifest.model_copy(update={"files": _hashes(folder)})
    (folder / "manifest.json").write_text(manifest.model_dump_json(indent=1) + "\n")
    return manifest


def _take(source: Path, destination: Path) -> None:
    """Moves a plain file that the child left."""
    if source.is_symlink() or not source.is_file():
        raise UsageError(f"the compiler left no {source.name}", "try again")
    destination.write_bytes(source.read_bytes())


def _prepared(reply: child.Reply, arguments: dict[str, Argument]) -> tuple[Prepared, ...]:
    found = []
    for item in reply.prepared:
        argument = arguments[item.name]
        assert argument.role in ("const", "packed", "table")
        found.append(
            Prepared(
                name=item.name,
                dtype=argument.dtype.value,
                shape=argument.shape,
                role=argument.role,
                offset=item.offset,
                bytes=argument.bytes,
            )
        )
    return tuple(found)


def _write_sources(facts: _Facts, sources: Sources, folder: Path) -> None:
    (folder / "include").mkdir()
    (folder / "src").mkdir()
    name = sources.kernel
    for file in _FIXED:
        place = "include" if file == "ekb_runtime.h" else "src"
        (folder / place / file).write_text(_shipped(file))
    (folder / "include" / f"{name}.h").write_text(sources.header())
    (folder / "src" / f"{name}.c").write_text(sources.wrapper())
    constants = f" src/{name}_constants.S" if sources.prepared else ""
    if constants:
        (folder / constants.strip()).write_text(sources.constants())
    rules = rules_of(facts.golden, facts.program.outputs)
    (folder / "src" / "golden.c").write_text(sources.golden(facts.golden, rules))
    values = {
        "NAME": name,
        "MACHINES": " ".join(facts.architecture.machines),
        "TRIPLE": facts.architecture.triple,
        "CONSTANTS": constants,
    }
    makefile = _shipped("Makefile.txt")
    for key, value in values.items():
        makefile = makefile.replace(f"@{key}@", value)
    (folder / "Makefile").write_text(makefile)
    (folder / f"{name}.ekir").write_text(facts.request.text, encoding="utf-8")
    (folder / "LICENSE").write_text(_licence())


def _shipped(file: str) -> str:
    return (resources.files("edgekernelbench.deploy") / "device" / file).read_text("utf-8")


def _licence() -> str:
    """The package's own: in a clone at its root, in an installation among the metadata."""
    for file in importlib.metadata.files("edgekernelbench") or ():
        if file.name == "LICENSE":
            return file.read_text("utf-8")
    return (Path(__file__).parents[3] / "LICENSE").read_text("utf-8")


def _write_golden(golden: Golden, sources: Sources, folder: Path) -> None:
    inputs = [p.name for p in sources.parameters if p.role == "input"]
    outputs = [p.name for p in sources.parameters if p.role == "output"]
    for number, case in enumerate(golden.cases):
        place = folder / "golden" / str(number)
        place.mkdir(parents=True)
        for k, name in enumerate(inputs):
            (place / f"in{k}-{name}.bin").write_bytes(case.inputs[name].tobytes())
        for k, name in enumerate(outputs):
            (place / f"out{k}-{name}.bin").write_bytes(case.truth[name].tobytes())


def _toolchain(facts: _Facts, built: _Built, sources: Sources, folder: Path) -> Toolchain:
    compiler: CCompiler | None = find_compiler(facts.architecture)
    why = ""
    if compiler is None:
        why = f"no {facts.architecture.triple}-gcc where the bundle was made"
    else:
        try:
            prebuild(compiler, folder, sources.kernel, bool(sources.prepared))
        except UsageError as error:  # no static C library, say: the device can still build it
            remove_folder(folder / "prebuilt")
            compiler, why = None, error.message
    return Toolchain(
        edgekernelbench=importlib.metadata.version("edgekernelbench"),
        tvm=importlib.metadata.version("apache-tvm"),
        llvm=built.reply.llvm,
        c_compiler=None if compiler is None else compiler.version,
        not_prebuilt=why,
    )


def _manifest(
    facts: _Facts, built: _Built, sources: Sources, toolchain: Toolchain, folder: Path
) -> BundleManifest:
    request, static = facts.request, built.manifest.facts
    constants = folder / child.CONSTANTS
    device = {"unreachable", "gpu", "opencl", "cuda"}
    return BundleManifest(
        kernel=KernelFacts(name=sources.kernel, hash=facts.digest, file=f"{sources.kernel}.ekir"),
        function=function_of(sources.kernel),
        parameters=sources.parameters,
        prepared=sources.prepared,
        architecture=facts.architecture.name,
        target=request.target.model_dump(mode="json", exclude=device, exclude_none=True),
        golden=GoldenFacts(
            cases=len(facts.golden.cases),
            seed=request.seed,
            truth=facts.golden.origin,
            constants=facts.golden.constants_origin,
            workload=None if request.workload is None else request.workload.id,
            tolerance=facts.golden.tolerance,
            tolerance_version=TOLERANCE_VERSION,
        ),
        toolchain=toolchain,
        licence={"runtime and generated C": "Apache-2.0", "kernel": "its author's"},
        measured=facts.measured,
        bill=Bill(
            flops=static.flops,
            io_bytes=static.io_bytes,
            packed_bytes=static.packed_bytes,
            workspace_bytes=static.workspace_bytes,
            code_bytes=static.code_bytes,
            constants_bytes=constants.stat().st_size if constants.exists() else 0,
            budget=built.reply.budget,
        ),
        files={},
    )


def _hashes(folder: Path) -> dict[str, File]:
    found = {}
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            data = file.read_bytes()
            digest = hashlib.sha256(data).hexdigest()
            found[str(file.relative_to(folder))] = File(sha256=digest, bytes=len(data))
    return found
