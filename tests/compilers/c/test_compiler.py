"""The C compiler behind the protocol: what is missing, what it refuses, what ends it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from edgekernelbench.compilers.c import CCompiler
from edgekernelbench.compilers.c import compiler as module
from edgekernelbench.compilers.c.source import source
from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator import doctor
from edgekernelbench.ir.check import check_text
from edgekernelbench.targets.cc import c_target, find_compiler, fitted, flags
from edgekernelbench.targets.host import host_target
from edgekernelbench.targets.registry import find_target, list_targets

SCALE = "kernel scale[N=8](x: f32[N]) -> (y: f32[N]) { compute { y[i] = x[i] * 2 } }"


def compile_text(text: str, folder: Path) -> object:
    found = check_text(text)
    assert found.kernel is not None and found.program is not None
    return CCompiler().compile(found.kernel, found.program, c_target(), folder)


def script(folder: Path, name: str, text: str) -> Path:
    file = folder / name
    file.write_text("#!/bin/sh\n" + text)
    file.chmod(0o755)
    return file


def pretender(folder: Path, otherwise: str) -> Path:
    """A compiler like the system's in all but what it does with a kernel."""
    real = find_compiler().command[0]
    text = f'case "$*" in *kernel.c*) {otherwise};; *) exec {real} "$@";; esac\n'
    return script(folder, "pretender", text)


# ---------------------------------------------------------------- finding it
def test_the_target_is_this_host_with_the_compiler_in_its_description() -> None:
    target, host = find_target("c"), host_target()
    assert (target.name, target.backend, target.threads) == ("c", "c", host.threads)
    assert target.section_names[-1] == "cpu" and target.on_cpu
    assert find_compiler().version in target.description
    assert target.reference.backend == "llvm" and target.reference.name == "llvm"
    assert set(target.features) <= set(host.features)


def test_the_compiler_that_cc_names_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = script(tmp_path, "mycc", f'exec {find_compiler().command[0]} "$@"\n')
    monkeypatch.setenv("CC", f"{own} -DOWN=1")
    found = find_compiler()
    assert found.command == (str(own), "-DOWN=1")
    assert str(own) in found.identity
    built = compile_text(SCALE, tmp_path)
    assert built.artifact is not None  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("/no/such/compiler", "does not exist"),
        ("no-such-compiler -O2", "does not exist"),
        ("cc 'unclosed", "is no command"),
        ("false", "is of no use"),
        ("true", "is of no use"),
    ],
)
def test_what_cc_may_not_be(value: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", value)
    with pytest.raises(UsageError, match=says) as caught:
        find_target("c")
    assert "CC" in caught.value.help


def test_a_file_that_cannot_be_executed_is_no_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "cc"
    file.write_text("")
    monkeypatch.setenv("CC", str(file))
    with pytest.raises(UsageError, match="cannot be executed"):
        find_compiler()


def test_no_compiler_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host_target()  # asks for the processor's name by a child, which needs the PATH
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="there is no C compiler"):
        find_target("c")
    assert any(line.startswith("c: there is no C compiler") for line in list_targets().missing)
    findings = {f.what: f for f in doctor._compilers()}
    assert findings["C compiler"].state == "missing" and "gcc" in findings["C compiler"].get


def test_doctor_and_the_list_name_it() -> None:
    assert any(target.name == "c" for target in list_targets().targets)
    found = next(f for f in doctor._compilers() if f.needed_for == "c")
    assert found.state == "found" and find_compiler().version in found.detail


def test_instructions_that_the_compiler_does_not_know_are_not_used() -> None:
    compiler = find_compiler()
    host = host_target().model_copy(update={"backend": "c"})
    assert fitted(host.model_copy(update={"features": ("avx9",)}), compiler).features == ()


def test_no_freedom_of_arithmetic_is_given() -> None:
    options = flags(find_compiler().machine, c_target())
    assert "-ffp-contract=off" in options
    assert not {"-ffast-math", "-Ofast", "-funsafe-math-optimizations"} & set(options)


def test_options_switch_features_of_the_processor() -> None:
    target = c_target().model_copy(update={"mattr": ("-avx512f",)})
    options = flags(find_compiler().machine, target)
    assert "-mno-avx512f" in options or any("noavx512f" in option for option in options)


# ---------------------------------------------------------------- what it says
def test_an_error_is_told_with_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object) -> str:
        return source(*arguments).replace("y[i_l] =", "y[nowhere] =")  # type: ignore[arg-type]

    monkeypatch.setattr("edgekernelbench.compilers.c.source.source", broken)
    built = compile_text(SCALE, tmp_path)
    (diagnostic,) = built.diagnostics  # type: ignore[attr-defined]
    assert diagnostic.rule.code == "E605"
    assert "kernel.c, in the nest of y: " in diagnostic.message and "nowhere" in diagnostic.message
    assert "y[nowhere] = x[i_l] * 2.0f;" in diagnostic.notes
    assert any(find_compiler().version in note for note in diagnostic.notes)


def test_a_compiler_that_ends_without_a_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", str(pretender(tmp_path, "echo out of patience >&2; exit 4")))
    folder = tmp_path / "build"
    folder.mkdir()
    built = compile_text(SCALE, folder)
    (diagnostic,) = built.diagnostics  # type: ignore[attr-defined]
    assert diagnostic.rule.code == "E605" and "out of patience" in diagnostic.message


def test_a_fault_of_the_printer_is_an_internal_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> str:
        raise KeyError("fell over")

    monkeypatch.setattr("edgekernelbench.compilers.c.source.source", fails)
    (diagnostic,) = compile_text(SCALE, tmp_path).diagnostics  # type: ignore[attr-defined]
    assert diagnostic.rule.code == "E699" and "fell over" in diagnostic.message


def test_other_backends_are_refused(tmp_path: Path) -> None:
    found = check_text(SCALE)
    assert found.kernel is not None and found.program is not None
    assert not CCompiler().supports(host_target())
    built = CCompiler().compile(found.kernel, found.program, host_target(), tmp_path)
    assert built.artifact is None and built.diagnostics[0].rule.code == "E603"


def test_the_artifact_has_its_source_and_its_bill(tmp_path: Path) -> None:
    built = compile_text(SCALE, tmp_path)
    assert built.artifact is not None  # type: ignore[attr-defined]
    manifest = built.artifact.manifest  # type: ignore[attr-defined]
    assert (tmp_path / module.SOURCE).read_text().startswith("/* Kernel scale,")
    assert manifest.facts.code_bytes > 0 and manifest.facts.compile_seconds > 0
    assert manifest.facts.io_bytes == 64


# ---------------------------------------------------------------- on the command line
def eval_with(cc: str, folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """`ekb eval` of a canonical program with a compiler of one's own."""
    ekb = [sys.executable, "-m", "edgekernelbench.cli"]
    workload = "gelu_erf__02"
    text = subprocess.run(
        [*ekb, "suite", "canonical", workload], capture_output=True, text=True, check=True
    ).stdout
    return subprocess.run(
        [*ekb, "eval", "-", "--workload", workload, "--target", "c", "--json", *more],
        input=text, capture_output=True, text=True, timeout=240, check=False,
        env={**os.environ, "CC": cc, "EDGEKERNELBENCH_CACHE": str(folder)},
    )  # fmt: skip


def test_a_missing_compiler_is_one_line_and_status_2(tmp_path: Path) -> None:
    done = eval_with("/no/such/cc", tmp_path)
    assert done.returncode == 2 and done.stdout == ""
    assert "CC='/no/such/cc'" in done.stderr and "Traceback" not in done.stderr
