"""A/A trials: kernels against themselves, compiled twice, order randomised. Prints one JSON object.

    .venv/bin/python benchmarks/aa.py --trials 200 --out runs/aa.jsonl
    .venv/bin/python benchmarks/aa.py --trials 200 --out runs/aa-loaded.jsonl --load

Each trial is a line of the file as soon as it is known; called again with the same file, it goes on
where it ended. ``--load`` keeps one of the timed cores busy with another process.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator.aa import Trial, summarise

_MOST_FAILURES = 5


@dataclass(frozen=True, slots=True)
class Subject:
    """A kernel to measure. ``source``: ``canonical`` or ``gallery``."""

    workload: Any
    source: str
    text: str

    @property
    def name(self) -> str:
        return f"{self.workload.id} {self.source}"


class Line(BaseModel):
    """A line of the file: one trial, of what, and where."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    subject: str
    cpu: str
    threads: int
    load: bool
    trial: Trial | None
    failure: str = ""


def subjects() -> list[Subject]:
    """The canonical programs of the subsets quick and agent, and the gallery's kernels."""
    from edgekernelbench.suite import load_suite
    from edgekernelbench.suite.gallery import load_gallery

    suite = load_suite()
    chosen = {w.id: w for name in ("quick", "agent") for w in suite.subset(name)}
    found = [Subject(w, "canonical", w.canonical()) for w in chosen.values()]
    every = {w.id: w for w in suite.subset("all")}
    found += [Subject(every[n], "gallery", e.kernel) for n, e in load_gallery().items()]
    return found


def read(file: Path) -> list[Line]:
    """The trials so far. A last line that was cut off is taken away.

    Raises:
        UsageError: another line cannot be read.
    """
    if not file.exists():
        return []
    lines = file.read_text().splitlines(keepends=True)
    found = []
    for number, line in enumerate(lines, 1):
        if number == len(lines) and not line.endswith("\n"):
            file.write_text("".join(lines[:-1]))
            break
        try:
            found.append(Line.model_validate_json(line))
        except ValueError as error:
            raise UsageError(f"{file}:{number}: no trial", "give another file") from error
    return found


def order(all_: list[Subject], done: list[Line]) -> Iterator[Subject]:
    """For ever: whoever has had the fewest trials, chosen by chance among equals."""
    counts = Counter(line.subject for line in done)
    source = random.SystemRandom()
    while True:
        least = min(counts[s.name] for s in all_)
        subject = source.choice([s for s in all_ if counts[s.name] == least])
        counts[subject.name] += 1
        yield subject


@contextlib.contextmanager
def busy(core: int | None) -> Iterator[None]:
    """Another process that never rests, on one processor; nothing for None."""
    if core is None:
        yield
        return
    code = f"import os; os.sched_setaffinity(0, ({core},))\nwhile True: pass"
    process = subprocess.Popen([sys.executable, "-c", code])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def measure(trials: int, file: Path, load: bool) -> list[Line]:
    """All trials, those of earlier calls included.

    Raises:
        UsageError: the file is of another machine or load, or kernels fail again and again.
    """
    from edgekernelbench.evaluator import Evaluator
    from edgekernelbench.targets.registry import find_target

    with Evaluator(find_target("llvm")) as evaluator:
        target = evaluator.target
        here: dict[str, Any] = {
            "cpu": target.description, "threads": target.threads, "load": load
        }  # fmt: skip
        lines = read(file)
        if any((line.cpu, line.threads, line.load) != tuple(here.values()) for line in lines):
            raise UsageError(f"{file}: of another machine or load", "give another file")
        evaluator.warm()
        core = evaluator.cores[0] if load else None
        file.parent.mkdir(parents=True, exist_ok=True)
        with busy(core), file.open("a") as out:
            for subject in order(subjects(), lines):
                if sum(line.trial is not None for line in lines) >= trials:
                    return lines
                if sum(line.trial is None for line in lines) > _MOST_FAILURES:
                    raise UsageError(f"{file}: too many kernels fail", lines[-1].failure)
                line = _line(evaluator, subject, here)
                lines.append(line)
                out.write(line.model_dump_json() + "\n")
                out.flush()
    raise AssertionError("the order has no end")


def _line(evaluator: Any, subject: Subject, here: dict[str, Any]) -> Line:
    from edgekernelbench.evaluator.aa import aa_trial
    from edgekernelbench.evaluator.contestant import Failure
    from edgekernelbench.evaluator.judge import WrongResult
    from edgekernelbench.evaluator.task import as_task
    from edgekernelbench.evaluator.worker import ChildLost

    try:
        trial = aa_trial(evaluator, as_task(subject.workload), subject.text)
    except (ChildLost, Failure, WrongResult, ValueError) as error:
        failure = f"{subject.name}: {type(error).__name__}: {error}"[:500]
        return Line(subject=subject.name, trial=None, failure=failure, **here)
    return Line(subject=subject.name, trial=trial, **here)


def report(lines: list[Line]) -> dict[str, Any]:
    """Counts and shares, and every trial that claimed a gain."""
    found = [line for line in lines if line.trial is not None]
    trials = [line.trial for line in found if line.trial is not None]
    summary = summarise(trials)
    n = summary.trials
    return {
        "cpu": lines[0].cpu,
        "threads": lines[0].threads,
        "load": lines[0].load,
        "trials": n,
        "tasks": len({line.subject.partition(" ")[0] for line in found}),
        "kernels": len({line.subject for line in found}),
        "failures": [line.failure for line in lines if line.trial is None],
        "lower_bound_above_1": {"count": summary.faster, "share": summary.faster / n},
        "lower_bound_above_1.05": {"count": summary.faster_by_5, "share": summary.faster_by_5 / n},
        "interval_holds_1": {"count": summary.covering, "share": summary.covering / n},
        "within_3_percent": {"count": summary.within, "share": summary.within / n},
        "disturbed": {"count": summary.disturbed, "share": summary.disturbed / n},
        "worst_error": summary.worst,
        "median_half_width": summary.width,
        "claims": {
            line.subject: line.trial.model_dump(mode="json")
            for line in found
            if line.trial is not None and line.trial.low > 1.0
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--out", type=Path, default=Path("runs/aa.jsonl"))
    parser.add_argument("--load", action="store_true", help="keep one timed core busy")
    options = parser.parse_args()
    print(json.dumps(report(measure(options.trials, options.out, options.load)), indent=2))


if __name__ == "__main__":
    main()
