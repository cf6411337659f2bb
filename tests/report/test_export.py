"""Exports: a row for each attempt and baseline, tables with counts and intervals, in every form."""

from __future__ import annotations

import csv
import importlib.util
import io
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from edgekernelbench.cli.main import app
from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator.conditions import Noise
from edgekernelbench.evaluator.model import EvaluationStatus
from edgekernelbench.records.read import RECORDS
from edgekernelbench.report.entries import Entry, read_entries
from edgekernelbench.report.export.flat import csv_of, parquet_of
from edgekernelbench.report.export.markup import latex_of, markdown_of
from edgekernelbench.report.export.rows import COLUMNS, rows_of
from edgekernelbench.report.export.tables import Table, tables_of
from edgekernelbench.report.export.write import exported, format_of
from edgekernelbench.scores.score import score
from edgekernelbench.suite import load_suite
from tests.factories import baseline, correct, record
from tests.report.synthetic import records, write

OLD = sorted(
    path.parent for path in (Path(__file__).parents[1] / "data" / "records").glob(f"*/{RECORDS}")
)
FEW = load_suite().subset("quick")[:8]
needs_pyarrow = pytest.mark.skipif(
    importlib.util.find_spec("pyarrow") is None, reason="needs pyarrow: the extra [parquet]"
)


@pytest.fixture
def entries(tmp_path: Path) -> tuple[Entry, ...]:
    a = write(tmp_path / "a", records("tuner", FEW, epochs=2))
    b = write(tmp_path / "b", records("leka", FEW, model="m"))
    return read_entries([a, b]).entries


def _read(data: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(data.decode())))


def test_a_row_for_each_attempt_and_baseline(entries: tuple[Entry, ...]) -> None:
    found = list(rows_of(entries))
    every = [record for entry in entries for record in entry.records]
    each = [1 if r.evaluation is None else max(1, len(r.evaluation.baselines)) for r in every]
    assert len(found) == sum(each) > len(every)
    assert {(row["run"], row["id"]) for row in found} == {
        (entry.name, record.id) for entry in entries for record in entry.records
    }
    names = [column.name for column in COLUMNS]
    assert len(names) == len(set(names)) and all(list(row) == names for row in found)


def test_the_figures_are_those_of_the_records() -> None:
    one = correct("k__01", {"tvm": baseline(2.0, 1.9), "ort": baseline(1.2, 0.9)}, "ort")
    entry = Entry("run", (record("k__01", one),), (Path(),), {})
    tvm, ort = _read(csv_of(rows_of([entry])))
    assert (tvm["baseline"], tvm["speedup"], tvm["fast_at_1"]) == ("tvm", "2.0", "true")
    assert (ort["baseline"], ort["speedup_low"], ort["fast_at_1"]) == ("ort", "0.9", "false")
    assert (tvm["baseline_is_best"], ort["baseline_is_best"]) == ("false", "true")
    assert tvm["median_us"] == "10.0" and tvm["status"] == "correct" and tvm["model"] == ""


def test_fast_at_1_can_be_counted_to_the_score(entries: tuple[Entry, ...]) -> None:
    scored = score(entries[1].records)["fast_at"]["best"]["1.0"]
    rows = [row for row in rows_of(entries[1:]) if row["baseline_is_best"]]
    assert sum(row["fast_at_1"] is True for row in rows) == scored["count"]


def test_what_a_spreadsheet_would_run_is_a_text() -> None:
    evil = record("k__01").model_copy(update={"agent": "=cmd|' /C calc'!A0", "message": "@SUM(1)"})
    [row] = _read(csv_of(rows_of([Entry("run", (evil,), (Path(),), {})])))
    assert row["agent"].startswith("'=") and row["message"].startswith("'@")


@needs_pyarrow
def test_parquet_has_the_rows_with_their_types(entries: tuple[Entry, ...]) -> None:
    import pyarrow.parquet as pq  # pyright: ignore[reportMissingImports]

    table: Any = pq.read_table(io.BytesIO(parquet_of(rows_of(entries))))
    assert table.to_pylist() == list(rows_of(entries))
    assert [str(table.schema.field(c).type) for c in ("level", "speedup", "fast_at_1", "id")] == [
        "int64", "double", "bool", "string",
    ]  # fmt: skip


def test_without_pyarrow_the_way_out_is_told(
    entries: tuple[Entry, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UsageError, match="pyarrow is not installed") as caught:
        parquet_of(rows_of(entries))
    assert "edgekernelbench[parquet]" in (caught.value.help or "")


SHARE = re.compile(r"\d+\.\d \\?%")
WHOLE = re.compile(r"\d+\.\d \\?% \(\d+/\d+\) \[\d+, \d+\]")


@pytest.mark.parametrize("form", [markdown_of, latex_of])
def test_every_share_has_its_count_and_interval(entries: tuple[Entry, ...], form: Any) -> None:
    text = form(tables_of(entries, (1, 2)))
    assert len(WHOLE.findall(text)) == len(SHARE.findall(text.replace("95 %", ""))) > 50
    for entry in entries:
        cell = score(entry.records)["fast_at"]["best"]["1.0"]
        assert f"({cell['count']}/{cell['n']})" in text


def test_lines_of_a_markdown_table_have_the_same_cells(entries: tuple[Entry, ...]) -> None:
    for block in markdown_of(tables_of(entries)).split("\n\n"):
        lines = [line for line in block.splitlines() if line.startswith("|")]
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines}) <= 1


def test_one_table_alone(entries: tuple[Entry, ...]) -> None:
    (head,) = tables_of(entries, names=["headline"])
    assert head.label == "headline" and len(head.rows) == 2
    assert [t.label for t in tables_of(entries, names=["by-level"])] == ["by-level-1", "by-level-2"]
    assert exported(entries, "latex", tables=["statuses"]).count(b"tabular}{") == 1
    with pytest.raises(UsageError, match="no table 'levels'") as caught:
        tables_of(entries, names=["levels"])
    assert "by-level" in (caught.value.help or "")
    with pytest.raises(UsageError, match="csv has a row"):
        exported(entries, "csv", tables=["headline"])


def test_times_of_a_noisy_machine_are_told_under_the_table(tmp_path: Path) -> None:
    def caption(*causes: str) -> str:
        quiet = correct("k__01", {"tvm": baseline(1.2, 1.1)}, "tvm")
        assert quiet.performance is not None
        seen = quiet.performance.model_copy(update={"noise": Noise(seconds=1.0, causes=causes)})
        found = [
            record("k__01", quiet.model_copy(update={"performance": seen})),
            record("k__02", quiet),
        ]
        folder = write(tmp_path / "-".join(("run", *causes)), found)
        return tables_of(read_entries([folder]).entries)[0].caption

    assert "noisy" not in caption()
    assert "noisy machine, with wider intervals: 1 of 2 in run-load." in caption("load")


def test_names_are_escaped() -> None:
    name = r"a|b_c_ 100 % & [x](http://e) <b>*{}\ $5 #1"
    table = Table("A caption.", "l", ("run", "n"), ((name, "1"),))
    assert r"| a\|b_c\_ 100 % & \[x\](http://e) \<b\>\*{}\\ $5 #1 | 1 |" in markdown_of([table])
    latex = latex_of([table])
    assert r"a\textbar{}b\_c\_ 100 \% \& [x](http://e) \textless{}b\textgreater{}*" in latex
    assert r"\{\}\textbackslash{} \$5 \#1 & 1 \\" in latex


def test_latex_is_balanced(entries: tuple[Entry, ...]) -> None:
    text = latex_of(tables_of(entries))
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == 2 + 2 * 5
    bare = re.sub(r"\\[{}]", "", text)
    assert bare.count("{") == bare.count("}")
    for table in re.findall(r"\\begin\{tabular\}\{(l r*|lr*)\}(.*?)\\end\{tabular\}", text, re.S):
        lines = [line for line in table[1].splitlines() if line.endswith(r"\\")]
        assert {len(re.findall(r"(?<!\\)&", line)) + 1 for line in lines} == {len(table[0])}
    assert len(set(re.findall(r"\\label\{([^}]*)\}", text))) == text.count(r"\label")
    assert text.isascii()


@pytest.mark.parametrize("folder", OLD, ids=[folder.name for folder in OLD])
@pytest.mark.parametrize("form", ["csv", "markdown", "latex"])
def test_records_of_every_shape(folder: Path, form: Any) -> None:
    assert exported(read_entries([folder]).entries, form)


def test_a_run_without_anything_correct_has_no_numbers_made_up(tmp_path: Path) -> None:
    found = [record("k__01", status=EvaluationStatus.PROVIDER_ERROR), record("k__02")]
    folder = write(tmp_path / "run", found)
    text = exported(read_entries([folder]).entries, "markdown").decode()
    assert "nan" not in text and "0.0 % (0/1)" in text
    assert len(_read(exported(read_entries([folder]).entries, "csv"))) == 2


def _run(*words: str) -> Any:
    return CliRunner().invoke(app, ["export", *words])


def test_the_command(tmp_path: Path) -> None:
    folder = write(tmp_path / "run", records(workloads=FEW))
    for suffix, begins in ((".csv", b"run,id"), (".md", b"Shares of tasks"), (".tex", b"% Needs")):
        file = tmp_path / f"x{suffix}"
        assert _run(str(folder), "-o", str(file)).exit_code == 0
        assert file.read_bytes().startswith(begins)
    shown = _run(str(folder), "-o", "-", "--format", "csv")
    assert shown.stdout_bytes == (tmp_path / "x.csv").read_bytes()


def test_what_cannot_be_written_is_told(tmp_path: Path) -> None:
    folder = write(tmp_path / "run", records(workloads=FEW[:1]))
    with pytest.raises(UsageError, match="does not say which form"):
        format_of(Path("x.txt"))
    assert "the form is not named" in str(_run(str(folder), "-o", "-").exception)
    assert "cannot be written" in str(_run(str(folder), "-o", str(tmp_path / "n/x.csv")).exception)
