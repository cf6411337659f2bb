"""What `ekb optimize` makes of whole models: one Markdown table of the models of edge_models.py.

    .venv/bin/python benchmarks/optimize_models.py runs/models
    .venv/bin/python benchmarks/optimize_models.py runs/models --model ds_cnn --budget ds_cnn=30
    .venv/bin/python benchmarks/optimize_models.py runs/models --table docs/results/models.md

The first two measure what the folder lacks and print the table; what was killed goes on where it
was; the third only writes it. The last check of each model needs a C compiler: the bundle is built
as a library and called through its C function, next to ONNX Runtime on the same inputs. Measure on
a quiet machine.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from edgekernelbench.optimize.report import Report
    from edgekernelbench.suite.correctness import Correctness
    from edgekernelbench.suite.model import Workload

TARGET = "llvm"
BUDGETS = {"ds_cnn": 40, "transformer": 60, "mobilenet": 120, "resnet8": 60, "bert_tiny": 60}
"""Evaluations of a model; more where it has more different parts."""

BASELINES = ("tvm-raw", "tvm", "ort")
WANTED = {"tvm-raw": 3.0, "tvm": 1.3}
"""How many times as fast as that a whole model should be."""

DRAWS = 5
ALIGNMENT = 64
STARTS = "starts.jsonl"

READING = """\
Each model was built here with random weights, cut into groups of operators, and its parts were
worked on by the tuner, which asks no language model. *Evaluations* are those of all parts together,
of the budget. *Error* is the largest difference between the bundle, called through its C function,
and ONNX Runtime on the model as it came, over {draws} draws of inputs, and in brackets the same as
a multiple of what the task's tolerance allows. *ms* is the time of a call of the whole model. A
ratio is the baseline's median over the kernel's, timed in turns in the same rounds, with its 95 %
interval: above 1 the kernel is the faster one. *Seconds* are those of the whole command, tuning
included."""


def main() -> None:
    from edgekernelbench.errors import UsageError

    options = _options()
    try:
        if options.table is not None:
            finish(options.folder, options.table)
            return
        for name in options.model or BUDGETS:
            measure(options.folder, name, options.budget.get(name, BUDGETS[name]))
        finish(options.folder, None)
    except UsageError as error:
        sys.exit(f"{error.message}: {error.help}")


def finish(folder: Path, table: Path | None) -> None:
    """Checks every finished model and writes the page; ends with 1 if one is not right.

    Raises:
        UsageError: the folder holds no finished model, or one without a bundle.
    """
    from edgekernelbench.errors import UsageError
    from edgekernelbench.optimize import report as reports

    found = {name: reports.read(folder / name) for name in BUDGETS}
    known = {name: report for name, report in found.items() if report is not None}
    if not known:
        raise UsageError(f"{folder}: no finished model", "leave --table out first")
    verdicts = {name: agreement(folder, name) for name in known}
    text = "\n".join(page(folder, known, verdicts)) + "\n"
    if table is None:
        print(text, end="")
    else:
        table.write_text(text, encoding="utf-8")
    wrong = [name for name, draws in verdicts.items() if not all(v.passed for v in draws)]
    if wrong:
        sys.exit(f"outside the tolerance of ONNX Runtime: {', '.join(wrong)}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="of the models and all that comes of them")
    parser.add_argument("--table", type=Path, help="write the page of the folder, measure nothing")
    parser.add_argument("--model", action="append", choices=BUDGETS, help="only this; repeatable")
    parser.add_argument(
        "--budget", action="append", type=_budget, default=[], metavar="MODEL=N",
        help=f"evaluations, in place of {BUDGETS}",
    )  # fmt: skip
    options = parser.parse_args()
    options.budget = dict(options.budget)
    return options


def _budget(text: str) -> tuple[str, int]:
    name, _, number = text.partition("=")
    if name not in BUDGETS or not number.isdigit() or int(number) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: write MODEL=N, N from 1, of {list(BUDGETS)}")
    return name, int(number)


# ---------------------------------------------------------------- measuring
def measure(folder: Path, name: str, budget: int) -> None:
    """Does what is left of one model's optimisation, and notes how long that took.

    Raises:
        UsageError: the folder holds it, with another budget.
    """
    from benchmarks.edge_models import MODELS
    from edgekernelbench.errors import UsageError
    from edgekernelbench.optimize import report as reports

    folder.mkdir(parents=True, exist_ok=True)
    model, out = folder / f"{name}.onnx", folder / name
    if not model.exists():
        MODELS[name](folder)
    known = reports.read(out)
    if known is not None and known.budget != budget:
        raise UsageError(
            f"{out}: was done with {known.budget} evaluations, not {budget}",
            f"say --budget {name}={known.budget}, or name another folder",
        )
    if known is not None and not known.interrupted:
        return
    command = [sys.executable, "-m", "edgekernelbench.cli", "optimize", str(model), "-o", str(out)]
    command += ["--target", TARGET, "--agent", "tuner", "--budget", str(budget)]
    began = time.monotonic()
    try:
        done = subprocess.run(command, check=False, stdout=sys.stderr)
    finally:
        seconds = round(time.monotonic() - began, 1)
        with (folder / STARTS).open("a") as file:
            line = {"model": name, "commit": commit(), "seconds": seconds}
            file.write(json.dumps(line) + "\n")
    if done.returncode != 0:
        sys.exit(f"{name}: ekb optimize ended with {done.returncode}; the same command goes on")


def commit() -> str:
    """The clone's commit, marked if files differ from it."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty=, changed"]
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"figures need a commit to stand for, and git does not tell it: {error}")


# ---------------------------------------------------------------- the bundle beside ONNX Runtime
def agreement(folder: Path, name: str) -> list[Correctness]:
    """The bundle's outputs judged as if ONNX Runtime's were the truth, one verdict a draw."""
    import onnxruntime

    from edgekernelbench.optimize.tasks import home_of
    from edgekernelbench.suite.own import store

    session = onnxruntime.InferenceSession(folder / f"{name}.onnx")
    names = [given.name for given in session.get_inputs()]
    with store.placed(home_of(folder / name)), tempfile.TemporaryDirectory() as place:
        workload = store.read(name).tasks[0].workload
        bundle = Bundle(folder / name / "bundle", Path(place))
        free = [spec.name for spec in workload.input_specs if not spec.const]
        verdicts = []
        for seed in range(DRAWS):
            drawn = workload.inputs(seed)
            given = [drawn[each] for each in free]
            made = bundle(workload, given)
            told = session.run(None, dict(zip(names, given, strict=True)))
            truth = zip(workload.output_specs, told, strict=True)
            verdicts.append(
                workload.compare(made, {spec.name: np.asarray(array) for spec, array in truth})
            )
        return verdicts


class Bundle:
    """A bundle's C function."""

    def __init__(self, folder: Path, place: Path) -> None:
        from edgekernelbench.errors import UsageError

        folder = folder.resolve()
        if not (folder / "manifest.json").exists():
            raise UsageError(f"{folder}: no bundle there", "the model's report.md says why")
        manifest = json.loads((folder / "manifest.json").read_text())
        sources = [
            path for pattern in ("src/*.c", "src/*.S", "lib/*.o")
            for path in sorted(folder.glob(pattern))
            if path.stem not in ("selftest", "golden")
        ]  # fmt: skip
        library = place / "bundle.so"
        command = ["cc", "-std=gnu11", "-shared", "-fPIC", "-O2", f"-I{folder / 'include'}"]
        command += [*map(str, sources), "-o", str(library), "-lm", "-pthread"]
        subprocess.run(command, check=True, cwd=folder)
        self._library = ctypes.CDLL(str(library))
        self._library.ekb_error.restype = ctypes.c_char_p
        self._function = self._library[manifest["function"]]

    def __call__(self, workload: Workload, given: list[np.ndarray]) -> dict[str, np.ndarray]:
        inputs = [_aligned(array) for array in given]
        outputs = {
            spec.name: _aligned(np.full(spec.shape, np.nan, given[0].dtype))
            for spec in workload.output_specs
        }
        arrays = (*inputs, *outputs.values())
        code = self._function(*(ctypes.c_void_p(array.ctypes.data) for array in arrays))
        if code != 0:
            sys.exit(f"{workload.id}: the bundle's function refused: {self._library.ekb_error()}")
        return outputs


def _aligned(array: np.ndarray) -> np.ndarray:
    """A copy that begins where a bundle wants arrays to begin."""
    room = np.empty(array.nbytes + ALIGNMENT, np.uint8)
    first = -room.ctypes.data % ALIGNMENT
    copy = room[first : first + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


# ---------------------------------------------------------------- the page
def page(
    folder: Path, known: dict[str, Report], verdicts: dict[str, list[Correctness]]
) -> Iterator[str]:
    """The lines of the page, in Markdown."""
    path = folder / STARTS
    starts = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    yield "# Whole models, measured"
    yield ""
    yield from _head(known, [start for start in starts if start["model"] in known])
    yield from READING.format(draws=DRAWS).splitlines()
    yield ""
    titles = ["model", "groups (different)", "evaluations", "error", "ms", *BASELINES, "seconds"]
    yield f"| {' | '.join(titles)} |"
    yield "|---" * len(titles) + "|"
    for name, report in known.items():
        seconds = sum(start["seconds"] for start in starts if start["model"] == name)
        yield _row(name, report, verdicts[name], seconds)
    yield ""
    for name, report in known.items():
        yield from _remarks(name, report)


def _head(known: dict[str, Report], starts: list[dict[str, Any]]) -> Iterator[str]:
    import platform

    commits = ", ".join(sorted({start["commit"] for start in starts}))
    cpus = ", ".join(sorted({f"{r.cpu}, {r.threads} threads" for r in known.values()}))
    yield f"- Machine: {cpus}; {platform.system()} {platform.release()}."
    yield f"- Commit: {commits}."
    yield ""
    yield "```sh"
    yield ".venv/bin/python benchmarks/optimize_models.py runs/models"
    yield "```"
    yield ""


def _row(name: str, report: Report, verdicts: list[Correctness], seconds: float) -> str:
    figures = report.whole.after
    groups = sum(part.count for part in report.parts)
    used = sum(part.evaluations for part in report.parts)
    worst = max(verdicts, key=lambda verdict: verdict.worst_error)
    error = f"{max(v.max_abs for v in verdicts):.2g} ({worst.worst_error:.2g} of the allowed)"
    if not all(verdict.passed for verdict in verdicts):
        error += ", outside the tolerance"
    cells = [name, f"{groups} ({len(report.parts)})", f"{used} of {report.budget}", error]
    cells.append("-" if figures.median_us is None else f"{figures.median_us / 1000:.3f}")
    for baseline in BASELINES:
        ratio = figures.speedups.get(baseline)
        low, high = figures.intervals.get(baseline, (0.0, 0.0))
        cells.append("-" if ratio is None else f"{ratio:.2f} [{low:.2f}, {high:.2f}]")
    return f"| {' | '.join([*cells, f'{seconds:.0f}'])} |"


def _remarks(name: str, report: Report) -> Iterator[str]:
    whole = report.whole
    improved = sum(part.used for part in report.parts)
    yield (
        f"- {name}: {whole.kind} with {improved} of {len(report.parts)} parts improved, "
        f"{whole.gain:.2f} times as fast as the {whole.before_kind} program."
    )
    for baseline, wanted in WANTED.items():
        ratio = whole.after.speedups.get(baseline, 0.0)
        if ratio < wanted:
            yield f"- {name}: {ratio:.2f} times as fast as `{baseline}`, wanted {wanted:g}."
    yield from (f"- {name}: {note}" for note in report.notes)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    main()
