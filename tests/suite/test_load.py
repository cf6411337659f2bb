"""The tables, as loaded."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest

from edgekernelbench.errors import UsageError
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.suite import SUBSETS, load_suite
from edgekernelbench.suite.formula import evaluate, names_in
from edgekernelbench.suite.load import read_tables

SUITE = load_suite()
WORKLOADS = list(SUITE.workloads.values())


def test_loading_is_quick_and_imports_no_toolchain():
    """No compiler, no ONNX, no SciPy. The quickest of three processes, as machines are busy; what
    NumPy and pydantic take to import, more than all of ours, is not counted.
    """
    program = (
        "import sys, time, numpy; from pydantic import BaseModel; start = time.process_time();"
        "from edgekernelbench.suite import load_suite; load_suite();"
        "print(time.process_time() - start);"
        "heavy = {'tvm', 'onnx', 'onnxruntime', 'onnxscript', 'scipy'} & set(sys.modules);"
        "assert not heavy, heavy;"
        "assert not [m for m in sys.modules if m.startswith('edgekernelbench.suite.patterns.')]"
    )
    command = [sys.executable, "-c", program]
    runs = (subprocess.run(command, check=True, stdout=subprocess.PIPE) for _ in range(3))
    assert min(float(run.stdout) for run in runs) < 0.4


def test_the_suite_has_the_published_size():
    assert len(WORKLOADS) == 650
    assert len(SUITE.definitions) == 331


def test_ids_name_their_pattern():
    for workload in WORKLOADS:
        assert workload.id.rpartition("__")[0] == workload.pattern


def test_stats_have_the_promised_keys():
    stats = SUITE.stats()
    assert stats["workloads"] == len(WORKLOADS)
    assert stats["patterns"] == len(SUITE.definitions)
    for key in ("by_level", "by_family", "by_domain"):
        assert sum(stats[key].values()) == len(WORKLOADS)
    assert set(stats["by_level"]) == {"1", "2", "3"}


def test_the_agent_subset_is_the_published_size():
    agent = SUITE.subset("agent")
    assert len(agent) == 46
    assert len({w.pattern for w in agent}) == 46
    assert [sum(w.level == level for w in agent) for level in (1, 2, 3)] == [27, 13, 6]
    assert not any(w.heldout for w in agent)


def test_the_quick_subset_is_small_and_varied():
    quick = SUITE.subset("quick")
    assert 12 <= len(quick) <= 24
    assert {w.level for w in quick} == {1, 2, 3}
    assert {"f32", "f16", "s8", "u8"} <= {w.dtype for w in quick}
    assert any(w.tolerance == "int_index" for w in quick)
    assert len({w.family for w in quick}) >= 10
    assert max(w.flops for w in quick) < 10**8


def test_subsets_lie_in_the_whole_and_others_are_refused():
    everything = {w.id for w in SUITE.subset("all")}
    for name in SUBSETS:
        assert {w.id for w in SUITE.subset(name)} <= everything
    with pytest.raises(UsageError, match="unknown subset"):
        SUITE.subset("none")


def test_float_tensors_take_the_workloads_dtype():
    half = SUITE.workloads["gemv_row_major__01"]
    assert half.dtype == "f16"
    assert {s.dtype for s in (*half.input_specs, *half.output_specs)} == {DType.F16}


@pytest.mark.parametrize(
    ("id", "const"),
    [
        ("matmul_nt__01", {"B"}),
        ("batch_matmul_nt__01", set()),
        ("qconv2d_s8s32_nhwc__01", {"zx", "w", "bias"}),
        ("embedding_bag_sum__01", {"table"}),
        ("spmm_csr__01", set()),
        ("mamba_selective_scan__01", {"A", "D"}),
        ("rope_half_split__01", {"cos", "sin"}),
        ("fir_q15__01", {"h"}),
    ],
)
def test_const_means_known_before_deployment(id, const):
    assert {s.name for s in SUITE.workloads[id].input_specs if s.const} == const


def test_digests_are_unique_and_lasting():
    """Random streams hang on them: a changed digest redraws every published input."""
    assert len({w.digest for w in WORKLOADS}) == len(WORKLOADS)
    assert SUITE.workloads["matmul_nt__01"].digest.startswith("555d8553eed3bce5")


def test_resized_recounts_and_leaves_the_subsets():
    workload = SUITE.workloads["matmul_nt__01"]
    small = workload.resized(M=4, K=8)
    assert small.input_specs[0].shape == (4, 8)
    assert small.input_specs[1].shape == (576, 8)
    assert small.flops == 2 * 4 * 576 * 8
    assert not small.agent and not small.quick
    assert small.digest != workload.digest
    assert workload.bindings["M"] == 128
    with pytest.raises(ValueError, match="no bindings Q"):
        workload.resized(Q=3)


@pytest.mark.parametrize(
    ("formula", "value"),
    [
        ("(H+2*pad-R)//stride+1", 5),
        ("cv(2,3,4,5,1,1)", 240),
        ("max(H, 3)-min(2, R)", 8),
        ("-2*3", -6),
        ("int(log2(8))", 3),
        ("H/4", 2.5),
    ],
)
def test_formulas(formula, value):
    assert evaluate(formula, {"H": 10, "pad": 0, "R": 2, "stride": 2}) == value


@pytest.mark.parametrize(
    "formula",
    ["__import__('os')", "H.real", "(lambda: 1)()", "[1][0]", "Q", "H +", "open('x')", "'a'*9"],
)
def test_formulas_are_not_python(formula):
    with pytest.raises(ValueError):
        evaluate(formula, {"H": 1})


def test_names_of_formulas():
    assert names_in("cv(OH, 2*K, 3, C, R, S) + max(H, 3)") == set("KCRSH") | {"OH"}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One family of the packaged tables."""
    folder = tmp_path_factory.mktemp("tables")
    packaged = resources.files("edgekernelbench.suite") / "data"
    for kind in ("patterns", "workloads"):
        (folder / kind).mkdir()
        text = (packaged / kind / "matmul.csv").read_text(encoding="utf-8")
        (folder / kind / "matmul.csv").write_text(text, encoding="utf-8")
    assert len(read_tables(folder).definitions) > 3
    return folder


@pytest.mark.parametrize(
    ("kind", "old", "new", "told"),
    [
        ("patterns", "A:[M,K]:T", "A:[M,K]:F", "inputs: 'A:[M,K]:F' has the unknown dtype 'F'"),
        ("patterns", "A:[M,K]:T", "A[M,K]:T", "inputs: 'A[M,K]:T' is not name:[dims"),
        ("patterns", "f32_reduction", "f32_loose", "tolerance: Input should be"),
        ("patterns", ",1,matmul,", ",one,matmul,", "level: 'one' is no whole number"),
        ("patterns", ",1,matmul,", ",9,matmul,", "level: Input should be"),
        ("patterns", ",1,matmul,", ",1,", "it has 21 cells, the table 22 columns"),
        ("patterns", ",1,matmul,", ",1,matmul,more,", "it has 23 cells, the table 22 columns"),
        ("patterns", ",B,K,", ",Bt,K,", "const: 'Bt' is no input (A, B)"),
        ("patterns", ",NT,,,", ",NT,eps;mu,,", "attrs: 'eps;mu' is no name"),
        ("patterns", ",NT,,,", ",NT,,OH,", "derived: 'OH' is not name=formula"),
        ("patterns", ",M=5 ", ",M=five ", "small: 'five' is not JSON"),
        ("patterns", ",B,K,,", ",B,K,few,", "lsb_share: 'few' is no number"),
        ("workloads", '""M"":128', '""M"":', 'bindings: \'{"M":,'),
        ("workloads", ",f32,f32_reduction,", ",f32,f32_reduction,?", "flops: '?"),
        ("workloads", ",1,0,,", ",yes,0,,", "agent_subset: 'yes' is neither 0 nor 1"),
        ("workloads", ",matmul_nt,", ",matmul_xy,", "there is no 'matmul_xy'"),
    ],
)
def test_malformed_rows_are_told_with_file_and_row(
    kind: str, old: str, new: str, told: str, tables: Path, tmp_path: Path
):
    folder = tmp_path / "data"
    shutil.copytree(tables, folder)
    file = folder / kind / "matmul.csv"
    lines = file.read_text(encoding="utf-8").splitlines()
    at = next(i for i, line in enumerate(lines) if old in line and line.startswith("matmul_nt"))
    lines[at] = lines[at].replace(old, new, 1)
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        read_tables(folder)
    assert caught.value.message.startswith(f"{kind}/matmul.csv, row {at + 1} (matmul_nt")
    assert told in caught.value.message


def test_a_row_that_stands_twice(tables: Path, tmp_path: Path):
    folder = tmp_path / "data"
    shutil.copytree(tables, folder)
    file = folder / "patterns" / "matmul.csv"
    lines = file.read_text(encoding="utf-8").splitlines()
    file.write_text("\n".join([*lines, lines[1]]) + "\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"patterns/matmul\.csv, row \d+: \w+ stands in the table"):
        read_tables(folder)
