"""The table of measured figures: made of records alone, and what has no figure is in it too."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import gallery as benchmark
from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator.model import (
    BaselineResult,
    Environment,
    Evaluation,
    EvaluationStatus,
)
from edgekernelbench.records.schema import Record
from edgekernelbench.suite import load_suite
from edgekernelbench.suite.gallery import load_gallery
from edgekernelbench.targets.host import host_target
from edgekernelbench.targets.peaks import Bandwidth, Peaks
from tests import factories

PEAKS = Peaks(
    target="llvm",
    cpu="a CPU",
    threads=2,
    flops_f32=1e11,
    bandwidths=(Bandwidth(working_set=1 << 20, bytes_per_s=1e10, kernel="triad"),),
    kernels={},
    date="2026-01-01",
    method="",
)
TARGET = host_target().model_copy(update={"threads": 2})


def measured(id: str, speedup: float) -> Record:
    """A correct record at 10 us, with every baseline but the tuned one."""
    baselines = {
        name: factories.baseline(speedup, speedup * 0.9, name != "tvm-raw")
        for name in ("tvm", "ort", "tvm-raw")
    }
    missing = BaselineResult(status="unavailable", scored=True, message="no schedules")
    environment = Environment(cpu="a CPU", system="Linux", threads=2, load_average=0.25)
    evaluation = factories.correct(id, {**baselines, "tvm-tuned": missing}, "tvm")
    return recorded(id, evaluation.model_copy(update={"environment": environment}))


def recorded(id: str, evaluation: Evaluation) -> Record:
    workload = load_suite().workloads[id]
    record = factories.record(
        id, evaluation, agent="gallery", level=workload.level, family=workload.family
    )
    update = {"agent_options": {"commit": "abc123"}, "kernel": load_gallery()[id].kernel}
    return record.model_copy(update=update)


def run_folder(folder: Path, *records: Record) -> Path:
    (folder / "records.jsonl").write_text("".join(r.model_dump_json() + "\n" for r in records))
    (folder / "run.json").write_text(json.dumps({"target": TARGET.model_dump(mode="json")}))
    (folder / "peaks.json").write_text(PEAKS.model_dump_json())
    return folder


def rows(lines: list[str]) -> dict[str, list[str]]:
    """First cell to the others, of the first table."""
    first = next(i for i, line in enumerate(lines) if line.startswith("| kernel | us"))
    table = lines[first : lines.index("", first)]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
    return {row[0]: row[1:] for row in cells}


def test_a_row_has_time_ratios_with_intervals_and_share_of_roofline(tmp_path: Path) -> None:
    folder = run_folder(tmp_path, measured("layer_norm_last__01", 1.5))
    lines = list(benchmark.report(folder))
    found = rows(lines)["[layer_norm_last__01](../gallery/layer_norm_last__01.md)"]
    assert found[:5] == [
        "10 [9.9, 10.1]",
        "1.5 [1.35, 1.65]",
        "unavailable",
        "1.5 [1.35, 1.65]",
        "1.5 [1.35, 1.65]",
    ]
    assert found[5] == "tvm"
    # 4,611,072 bytes at 10 GB/s take 461 us; the record claims 10
    assert float(found[6]) == pytest.approx(46.1, abs=0.1)
    text = "\n".join(lines)
    for told in ("abc123", "a CPU", "2026-01-01", "at most 0.2", "unavailable: no schedules"):
        assert told in text


def test_arithmetic_is_the_roof_where_it_takes_longer() -> None:
    record = measured("matmul_nt__01", 1.0)
    assert benchmark.roofline_us(record, TARGET, PEAKS) == pytest.approx(849.3, abs=0.1)


def test_a_kernel_without_a_time_is_shown_with_its_status(tmp_path: Path) -> None:
    wrong = Evaluation(
        status=EvaluationStatus.CRASHED, workload="fir_direct__01", target="llvm", message="signal"
    )
    folder = run_folder(tmp_path, measured("matmul_nt__01", 1.2), recorded("fir_direct__01", wrong))
    lines = list(benchmark.report(folder))
    found = rows(lines)["[fir_direct__01](../gallery/fir_direct__01.md)"]
    assert found == ["crashed", *["-"] * 6]
    assert any(line.startswith("| all | 1/2 |") for line in lines)


def test_means_have_intervals_from_six_kernels_on(tmp_path: Path) -> None:
    ids = [id for id in load_gallery() if load_gallery()[id].workload.family == "matmul"]
    ids.append("fir_direct__01")
    assert len(ids) == 6
    folder = run_folder(tmp_path, *(measured(id, 1 + i / 10) for i, id in enumerate(ids)))
    lines = list(benchmark.report(folder))
    overall = next(line for line in lines if line.startswith("| all | 6/6 |"))
    family = next(line for line in lines if line.startswith("| matmul | 5/5 |"))
    assert "[" in overall and "[" not in family


def test_a_workload_without_a_kernel_is_refused() -> None:
    options: Any = argparse.Namespace(workload=["relu__01"], threads=2, out=Path("runs/x"))
    with pytest.raises(UsageError, match="relu__01"):
        benchmark._config(options)
