"""The gallery's kernels beside every baseline: measures them, or writes the table of such a run.

    .venv/bin/python benchmarks/gallery.py --out runs/gallery
    .venv/bin/python benchmarks/gallery.py --out runs/gallery --table docs/results/gallery.md

One record a kernel; a run that was killed goes on where it stopped. Measure on a quiet machine.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from edgekernelbench.agents.base import Answer, Device, Task
    from edgekernelbench.records.schema import Record
    from edgekernelbench.runs.order import RunConfig
    from edgekernelbench.targets.model import Target
    from edgekernelbench.targets.peaks import Peaks

BASELINES = ("tvm", "tvm-tuned", "ort", "tvm-raw")
MEASURE_S = 4.0
"""Time cap of one kernel's rounds, all contestants together: eight times that of a tuner's trial,
since these figures are published."""

PEAKS = "peaks.json"

READING = """\
Kernel and baselines are timed in turns, in the same rounds. A ratio is the baseline's median over
the kernel's, with its 95 % interval: above 1 the kernel is the faster one. `tvm-raw` is no part of
`best`. *Roofline* is the share of the measured roofline: the longer of the kernel's own operations
at the measured peak and the task's bytes at the measured bandwidth, over the time. An `exp` counts
as one operation and a launch as nothing, so short kernels and those of transcendental functions
stay far below 1."""


def main() -> None:
    from edgekernelbench.errors import UsageError

    options = _options()
    try:
        if options.table is None:
            measure(options)
            return
        text = "\n".join(report(options.out))
        options.table.write_text(text + "\n", encoding="utf-8")
    except UsageError as error:
        sys.exit(f"{error.message}: {error.help}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="folder of the run")
    parser.add_argument("--table", type=Path, help="write the table of the run, measure nothing")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--workload", action="append", help="only this one; repeatable")
    return parser.parse_args()


# ---------------------------------------------------------------- measuring
class GalleryAgent:
    """Hands in the gallery's kernel of a task. ``commit`` is what it was measured at: a run is
    resumed at the same one only."""

    name = "gallery"
    needs_canonical = False

    def __init__(self, commit: str) -> None:
        self._commit = commit

    @property
    def options(self) -> dict[str, Any]:
        return {"commit": self._commit}

    def attempt(self, task: Task, device: Device, seed: int) -> Answer:
        from edgekernelbench.agents.base import Answer
        from edgekernelbench.suite.gallery import load_gallery

        return Answer(load_gallery()[task.workload.id].kernel, "the gallery's kernel")


def measure(options: argparse.Namespace) -> None:
    """Measures what the folder lacks.

    Raises:
        UsageError: see `runs.run.run`; also for a workload that the gallery has no kernel of.
    """
    from edgekernelbench.evaluator import Evaluator
    from edgekernelbench.runs.run import Silent, run

    class Told(Silent):
        def attempt_ends(self, record: Record, resumed: bool) -> None:
            performance = record.evaluation.performance if record.evaluation else None
            time = "" if performance is None else f" {performance.median_us:.4g} us"
            print(f"{record.task.workload}: {record.status.value}{time}", file=sys.stderr)

    config = _config(options)
    with Evaluator(config.target, settings=config.settings) as evaluator:
        peaks = evaluator.peaks()
        assert peaks is not None, "the settings ask for a roofline"
        options.out.mkdir(parents=True, exist_ok=True)
        file = options.out / PEAKS
        if not file.exists():
            file.write_text(peaks.model_dump_json(indent=1) + "\n")
        run(config, options.out, True, evaluator, Told())


def _config(options: argparse.Namespace) -> RunConfig:
    from edgekernelbench.errors import UsageError
    from edgekernelbench.evaluator import EvalSettings
    from edgekernelbench.records.schema import Spent
    from edgekernelbench.runs.order import RunConfig
    from edgekernelbench.suite.gallery import load_gallery
    from edgekernelbench.targets.registry import find_target

    gallery = load_gallery()
    wanted = options.workload or list(gallery)
    for id in wanted:
        if id not in gallery:
            raise UsageError(f"the gallery has no {id!r}", f"it has {', '.join(gallery)}")
    return RunConfig(
        agent=GalleryAgent(_commit()),
        model=None,
        target=find_target("llvm").model_copy(update={"threads": options.threads}),
        workloads=tuple(gallery[id].workload for id in wanted),
        subset="gallery",
        limits=Spent(evaluations=0),
        epochs=1,
        seed=0,
        settings=EvalSettings(
            baselines=BASELINES, threads=options.threads, measure_s=MEASURE_S, interval=0.01
        ),
    )


def _commit() -> str:
    """The clone's commit, marked if files differ from it."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty=, changed"]
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"figures need a commit to stand for, and git does not tell it: {error}")


# ---------------------------------------------------------------- the table
def report(folder: Path) -> Iterator[str]:
    """The lines of a run's page, in Markdown.

    Raises:
        UsageError: there is no run, or it has no finished attempt.
    """
    import json

    from edgekernelbench.records.read import SETTINGS, find_records
    from edgekernelbench.targets.model import Target
    from edgekernelbench.targets.peaks import Peaks

    records = find_records(folder).records
    target = Target.model_validate(json.loads((folder / SETTINGS).read_text())["target"])
    peaks = Peaks.model_validate_json((folder / PEAKS).read_text())
    yield from _head(records, peaks, folder)
    yield from _kernels(records, target, peaks)
    yield from _means(records)
    yield from _routes(records)


def _head(records: Sequence[Record], peaks: Peaks, folder: Path) -> Iterator[str]:
    environments = [r.evaluation.environment for r in records if r.evaluation is not None]
    seen = [e for e in environments if e is not None]
    versions = records[0].versions
    packages = ", ".join(f"{name} {versions[name]}" for name in sorted(versions))
    loads = [e.load_average for e in seen if e.load_average is not None]
    yield "# The gallery, measured"
    yield ""
    yield f"- Date: {_several(r.started[:10] for r in records)}."
    yield f"- Machine: {_several(e.cpu for e in seen)}; {_several(e.system for e in seen)}."
    yield f"- Threads: {_several(str(e.threads) for e in seen)}, for kernels and baselines alike."
    if loads:
        yield f"- Load average of a minute before each measurement: at most {max(loads):.1f}."
    yield f"- Commit: {_several(str(r.agent_options['commit']) for r in records)}; {packages}."
    yield (
        f"- Measured peaks: {peaks.flops_f32 / 1e9:.0f} GFLOP/s (f32), "
        f"{peaks.memory_bytes_per_s / 1e9:.1f} GB/s from memory."
    )
    yield ""
    yield "```sh"
    threads = peaks.threads
    yield f".venv/bin/python benchmarks/gallery.py --threads {threads} --out runs/{folder.name}"
    yield "```"
    yield ""
    yield from READING.splitlines()
    yield ""


def _several(values: Iterable[str]) -> str:
    return ", ".join(sorted(set(values)))


def _kernels(records: Sequence[Record], target: Target, peaks: Peaks) -> Iterator[str]:
    yield f"| kernel | us | {' | '.join(BASELINES)} | best | roofline |"
    yield "|---" * (len(BASELINES) + 4) + "|"
    for record in records:
        evaluation = record.evaluation
        page = f"[{record.task.workload}](../gallery/{record.task.workload}.md)"
        if evaluation is None or evaluation.performance is None:
            yield f"| {page} | {record.status.value} |" + " - |" * (len(BASELINES) + 2)
            continue
        performance = evaluation.performance
        cells = [_interval(performance.median_us, performance.low_us, performance.high_us)]
        for name in BASELINES:
            found = evaluation.baselines[name]
            ratio = _interval(found.speedup, found.speedup_low, found.speedup_high)
            cells.append(ratio if found.status == "measured" else found.status)
        cells.append(evaluation.best or "-")
        share = roofline_us(record, target, peaks) / performance.median_us
        yield f"| {page} | {' | '.join(cells)} | {share:.2f} |"
    yield ""


def _interval(value: float | None, low: float | None, high: float | None) -> str:
    if value is None:
        return "-"
    bounds = "" if low is None or high is None else f" [{low:.4g}, {high:.4g}]"
    return f"{value:.4g}{bounds}"


def roofline_us(record: Record, target: Target, peaks: Peaks) -> float:
    """The least time of one call at the measured peaks, in microseconds.

    Raises:
        ValueError: the record holds no kernel that can be lowered for the target.
    """
    from edgekernelbench.ir.check import check_text
    from edgekernelbench.lowering.facts import function_facts
    from edgekernelbench.lowering.lower import lower
    from edgekernelbench.suite import load_suite

    checked = check_text(record.kernel or "")
    if checked.kernel is None or checked.program is None:
        raise ValueError(f"{record.id}: no kernel")
    module = lower(checked.kernel, checked.program, target).module
    if module is None:
        raise ValueError(f"{record.id}: not lowered for {target.name}")
    touched = load_suite().workloads[record.task.workload].bytes_touched
    compute = function_facts(module.main).flops / peaks.flops_f32
    return 1e6 * max(compute, touched / peaks.bytes_per_s(touched))


def _means(records: Sequence[Record]) -> Iterator[str]:
    from edgekernelbench.scores.score import score

    result = score(records)
    names = ("best", *BASELINES)
    yield "## Geometric means of the ratios"
    yield ""
    yield "With 95 % intervals (bootstrap over the kernels) where there are at least six kernels."
    yield ""
    yield f"| family | correct | {' | '.join(names)} |"
    yield "|---" * (len(names) + 2) + "|"
    for family, group in [*result["by_family"].items(), ("all", result)]:
        means, intervals = group["geomean_speedup"], group["geomean_interval"]
        cells = [
            _interval(means.get(name), *(intervals.get(name) or (None, None))) for name in names
        ]
        correct = group["correct_at"]["1"]
        yield f"| {family} | {correct['count']}/{correct['n']} | {' | '.join(cells)} |"
    yield ""


def _routes(records: Sequence[Record]) -> Iterator[str]:
    yield "## What the baselines were"
    yield ""
    yield "| kernel | tvm | tvm-tuned: schedules |"
    yield "|---|---|---|"
    for record in records:
        if record.evaluation is None or not record.evaluation.baselines:
            continue
        cells = []
        for name in ("tvm", "tvm-tuned"):
            found = record.evaluation.baselines[name]
            told = found.route if found.status == "measured" else f"{found.status}: {found.message}"
            cells.append(told.replace("|", "\\|").replace("\n", " "))
        yield f"| {record.task.workload} | {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
