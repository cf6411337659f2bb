"""Writes what is in a bundle."""

from __future__ import annotations

import hashlib
import importlib.metadata
import shutil
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from edgekernelbench.compilers.base import Argument, Manifest
from edgekernelbench.deploy import job as child
from edgekernelbench.deploy.architecture import OPENCL, Architecture
from edgekernelbench.deploy.golden import Golden, rules_of
from edgekernelbench.deploy.manifest import (
    Bill,
    BundleManifest,
    File,
    GoldenFacts,
    KernelFacts,
    Prepared,
    Toolchain,
)
from edgekernelbench.deploy.measured import Measured
from edgekernelbench.deploy.opencl import program_assembler, program_file, wrapper
from edgekernelbench.deploy.readme import readme
from edgekernelbench.deploy.sources import Sources, function_of, parameters_of
from edgekernelbench.deploy.toolchain import CCompiler, find_compiler, prebuild
from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator.building import open_plain
from edgekernelbench.evaluator.folders import remove_folder
from edgekernelbench.ir.core import Program
from edgekernelbench.suite.correctness import TOLERANCE_VERSION
from edgekernelbench.targets.cc import flags
from edgekernelbench.targets.model import Target

_MOST_ARGUMENTS = 128
_FIXED = ("ekb_runtime.c", "ekb_runtime.h", "selftest.c", "selftest.h")
_FIXED_OPENCL = ("ekb_opencl.c", "ekb_opencl.h")


@dataclass(frozen=True, slots=True)
class Built:
    """What the compile child left, and said."""

    manifest: Manifest
    reply: child.Reply


@dataclass(frozen=True, slots=True)
class Facts:
    """All that is known of a bundle beside its machine code.

    Attributes:
        text: the kernel's file; ``digest``: the hash of its canonical form.
        workload: the task's name, if one was given.
    """

    text: str
    digest: str
    program: Program
    target: Target
    architecture: Architecture
    golden: Golden
    seed: int
    workload: str | None
    measured: Measured | None


def fill(facts: Facts, built: Built, work: Path, folder: Path) -> BundleManifest:
    """Writes all files of a bundle into an empty folder.

    Args:
        work: where the compile child left what it made.

    Raises:
        UsageError: the kernel has more arrays than the device's part takes.
        LinkFailure: see `toolchain.prebuild`.
    """
    arguments = {a.name: a for a in built.manifest.arguments}
    order = built.manifest.main_args
    if len(order) > _MOST_ARGUMENTS:
        raise UsageError(
            f"the kernel takes {len(order)} arrays, and the device's part {_MOST_ARGUMENTS}",
            "cut it into several kernels",
        )
    name, target = facts.program.name, facts.target
    sources = Sources(
        kernel=name,
        parameters=parameters_of([arguments[n] for n in order]),
        prepared=_prepared(built.reply, arguments),
        arguments=order,
        target=f"{target.name} ({target.mcpu or facts.architecture.name})",
    )
    _write_sources(facts, sources, built, folder)
    _take_code(facts, work, folder)
    if sources.prepared:
        _take(work / child.CONSTANTS, folder / child.CONSTANTS)
    _write_golden(facts.golden, sources, folder)
    toolchain = _toolchain(facts, built, sources, folder)
    manifest = _manifest(facts, built, sources, toolchain, folder)
    (folder / "README.md").write_text(readme(manifest, sources.prototype(), facts.architecture))
    manifest = manifest.model_copy(update={"files": _hashes(folder)})
    (folder / "manifest.json").write_text(manifest.model_dump_json(indent=1) + "\n")
    return manifest


def _take_code(facts: Facts, work: Path, folder: Path) -> None:
    name = facts.program.name
    if facts.target.backend == "c":
        _take(work / child.SOURCE, folder / "src" / f"{name}_kernel.c")
        return
    if facts.target.backend == "opencl":
        _take(work / child.PROGRAM, folder / "src" / program_file(name))
        return
    (folder / "lib").mkdir()
    _take(work / child.OBJECT, folder / "lib" / f"{name}.o")


def kernel_flags(facts: Facts) -> tuple[str, ...]:
    """Options that the kernel's own source is compiled with; none where it is machine code."""
    if facts.target.backend != "c":
        return ()
    return flags(facts.architecture.triple, facts.target)


def _take(source: Path, destination: Path) -> None:
    """Copies a file that the child left."""
    try:
        given = open_plain(source)
    except (OSError, ValueError) as error:
        raise UsageError(f"the compiler left no {source.name}", "try again") from error
    with given, destination.open("wb") as taken:
        shutil.copyfileobj(given, taken)


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


def _write_sources(facts: Facts, sources: Sources, built: Built, folder: Path) -> None:
    (folder / "include").mkdir()
    (folder / "src").mkdir()
    name = sources.kernel
    opencl = facts.target.backend == "opencl"
    for file in (*_FIXED, *(_FIXED_OPENCL if opencl else ())):
        place = "include" if file.startswith("ekb_") and file.endswith(".h") else "src"
        (folder / place / file).write_text(_shipped(file))
    (folder / "include" / f"{name}.h").write_text(sources.header())
    (folder / "src" / f"{name}.c").write_text(
        wrapper(sources, built.manifest) if opencl else sources.wrapper()
    )
    constants = f" src/{name}_constants.S" if sources.prepared else ""
    if constants:
        (folder / constants.strip()).write_text(sources.constants())
    if opencl:
        (folder / "src" / f"{name}_program.S").write_text(program_assembler(name))
    rules = rules_of(facts.golden, facts.program.outputs)
    (folder / "src" / "golden.c").write_text(sources.golden(facts.golden, rules))
    values = _make_values(facts, constants)
    makefile = _shipped("Makefile.txt")
    for key, value in values.items():
        makefile = makefile.replace(f"@{key}@", value)
    (folder / "Makefile").write_text(makefile)
    (folder / f"{name}.ekir").write_text(facts.text, encoding="utf-8")
    (folder / "LICENSE").write_text(_licence())


def _make_values(facts: Facts, constants: str) -> dict[str, str]:
    """What stands in the Makefile for its marks."""
    name, backend = facts.program.name, facts.target.backend
    values = {
        "NAME": name,
        "MACHINES": " ".join(facts.architecture.machines),
        "TRIPLE": facts.architecture.triple,
        "SOURCES": constants,
        "CODE": f"build/{name}_kernel.c.o" if backend == "c" else f"lib/{name}.o",
        "FLAGS": " ".join(kernel_flags(facts)),
        "LIBRARIES": "-lm -pthread",
        "OPTIONS": "",
        "NEEDS": "",
    }
    if backend == "opencl":  # a static program could load no driver
        here = "$(shell uname -m)"
        values |= {"MACHINES": here, "TRIPLE": f"{here}-linux-gnu", "CODE": ""}
        values |= {"LIBRARIES": "-lm -pthread -ldl", "OPTIONS": " --threads 1"}
        values["SOURCES"] = f" src/ekb_opencl.c src/{name}_program.S{constants}"
        values["NEEDS"] = f"build/{name}_program.S.o: src/{name}.cl"
    return values


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


def _toolchain(facts: Facts, built: Built, sources: Sources, folder: Path) -> Toolchain:
    opencl = facts.architecture is OPENCL
    compiler: CCompiler | None = None if opencl else find_compiler(facts.architecture)
    why = ""
    if opencl:
        why = "it loads the device's driver, so it is built where that is"
    elif compiler is None:
        why = f"no {facts.architecture.triple}-gcc where the bundle was made"
    else:
        try:
            prebuild(compiler, folder, sources.kernel, bool(sources.prepared), kernel_flags(facts))
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
    facts: Facts, built: Built, sources: Sources, toolchain: Toolchain, folder: Path
) -> BundleManifest:
    static = built.manifest.facts
    constants = folder / child.CONSTANTS
    device = {"unreachable", "opencl", "cuda"}
    return BundleManifest(
        kernel=KernelFacts(name=sources.kernel, hash=facts.digest, file=f"{sources.kernel}.ekir"),
        function=function_of(sources.kernel),
        parameters=sources.parameters,
        prepared=sources.prepared,
        architecture=facts.architecture.name,
        target=facts.target.model_dump(mode="json", exclude=device, exclude_none=True),
        golden=GoldenFacts(
            cases=len(facts.golden.cases),
            seed=facts.seed,
            truth=facts.golden.origin,
            constants=facts.golden.constants_origin,
            workload=facts.workload,
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
