"""`optimise`: from an ONNX file to one fast kernel of the whole model, and its bundle."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from edgekernelbench.agents.registry import CODING_AGENTS, MODEL_AGENTS, make_agent, require_options
from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator import EvalSettings, Evaluator
from edgekernelbench.evaluator.evaluator import require_here
from edgekernelbench.files import write_whole
from edgekernelbench.optimize import report as reports
from edgekernelbench.optimize.journal import Finished, Journal
from edgekernelbench.optimize.report import Report, report_of
from edgekernelbench.optimize.request import Hands, Request, Watch
from edgekernelbench.optimize.tasks import HOME, Tasks, home_of, make, write_weights
from edgekernelbench.optimize.whole import Verdict, judge_whole
from edgekernelbench.optimize.work import Progress, optimise_parts, rank
from edgekernelbench.suite.own import store
from edgekernelbench.targets.model import Target
from edgekernelbench.targets.registry import find_target

WHOLE_COMPILE_S = 600.0
"""A whole model is many times a task, and nobody else's text: a compiler that takes a minute for it
is no sign of anything wrong."""

KERNEL, GROUPS, WEIGHTS, BUNDLE = "model.ekir", "groups", "weights.npz", "bundle"


def optimise(request: Request, hands: Hands, watch: Watch) -> Report:
    """Does what is left of an optimisation and writes its folder.

    An interrupt while an agent works ends that work; what was found until then is joined and
    judged. A second one, or one at another time, ends everything; the next call goes on.

    Raises:
        UsageError: an argument cannot be used, see there; or nothing could be shipped.
        KeyboardInterrupt: as said.
    """
    target = find_target(request.target)
    require_here(target)
    _check_agent(request)
    if request.budget < 1:
        raise UsageError(f"--budget {request.budget}: no evaluation", "give at least 1")
    arguments = request.arguments()
    with (
        Journal.open(request.folder, arguments) as journal,
        store.placed(home_of(request.folder)),
    ):
        known = _finished(request, journal)
        if known is not None:
            watch.say("nothing is left to do: this optimisation had finished")
            return known
        try:
            tasks = make(request, journal, watch)
        except UsageError:
            journal.discard(HOME)
            raise
        progress = Progress(journal)
        interrupted = _improve(request, target, tasks, progress, hands, watch)
        verdict = _judge(request, target, tasks, progress, watch)
        report = _written(_Result(request, target, tasks, progress, verdict, interrupted), watch)
        if not interrupted:
            journal.add(Finished())
        return report


def _check_agent(request: Request) -> None:
    """What can be known before there is a model."""
    if request.agent in (*MODEL_AGENTS, *CODING_AGENTS):
        if request.language_model is None:
            raise UsageError(f"the agent {request.agent!r} asks a model", "name one with --model")
        require_options(request.agent, request.options)
        return
    make_agent(request.agent, options=request.options)
    if request.language_model is not None:
        raise UsageError(f"the agent {request.agent!r} asks no model", "leave --model out")


def _finished(request: Request, journal: Journal) -> Report | None:
    if not any(isinstance(event, Finished) for event in journal.events):
        return None
    if request.bundle and not (request.folder / BUNDLE).is_dir():
        return None
    return reports.read(request.folder)


def _improve(
    request: Request,
    target: Target,
    tasks: Tasks,
    progress: Progress,
    hands: Hands,
    watch: Watch,
) -> bool:
    """Whether it was interrupted."""
    with Evaluator(target) as evaluator:
        rank(tasks, progress, evaluator, watch)
        try:
            optimise_parts(request, tasks, progress, evaluator, hands, watch)
        except KeyboardInterrupt:
            watch.say(
                "interrupted: what was found so far is joined and judged; interrupt again to leave "
                "at once. The same command goes on later"
            )
            return True
    return False


def _judge(
    request: Request, target: Target, tasks: Tasks, progress: Progress, watch: Watch
) -> Verdict:
    # Processes that were interrupted are in no state to be asked again, so these are fresh ones.
    settings = EvalSettings(compile_s=WHOLE_COMPILE_S)
    with Evaluator(target, settings=settings) as evaluator:
        kernels = progress.kernels(request, tasks)
        return judge_whole(
            tasks, kernels, progress.times(tasks), evaluator.target, evaluator, watch.say
        )


# ---------------------------------------------------------------- writing
@dataclass(frozen=True, slots=True)
class _Result:
    request: Request
    target: Target
    tasks: Tasks
    progress: Progress
    verdict: Verdict
    interrupted: bool


def _written(result: _Result, watch: Watch) -> Report:
    folder, verdict = result.request.folder, result.verdict
    assert verdict.chosen.text is not None, "it was judged right"
    groups = folder / GROUPS
    groups.mkdir(exist_ok=True)
    kernels = result.progress.kernels(result.request, result.tasks)
    for part, workload in result.tasks.parts.items():
        used = part in verdict.chosen.used
        text = kernels[part] if used else workload.canonical()
        write_whole(groups / f"{part}.ekir", text)
    write_weights(result.tasks.whole, folder / WEIGHTS)
    report = report_of(
        result.request, result.target, result.tasks, result.progress, verdict, result.interrupted
    )
    agreement = _agreement(result.tasks, folder / WEIGHTS)
    report = report.model_copy(update={"agreement": agreement})
    write_whole(folder / KERNEL, verdict.chosen.text, lasting=True)
    bundle = _bundle(result, watch)
    report = report.model_copy(update={"bundle": bundle})
    reports.write(report, folder)
    return report


_DRAWS = 3


def _agreement(tasks: Tasks, weights: Path) -> str:
    """ONNX Runtime on the model as it came, its own weights in it, against the truth that the
    kernel is held to.

    Raises:
        UsageError: they differ by more than is allowed, so one of them is wrong.
    """
    from edgekernelbench.suite.twin import run_twin

    workload = tasks.whole.workload
    with np.load(weights) as file:
        own = dict(file)
    worst = 0.0
    for seed in range(_DRAWS):
        inputs = {**workload.inputs(seed), **own}
        model = workload.twin(inputs)
        assert model is not None, "an ONNX task has a twin"
        verdict = workload.compare(run_twin(model, inputs), workload.truth(inputs, cache=False))
        if not verdict.passed:
            told = "; ".join(f"{d.name}: {d.reason}" for d in verdict.outputs if d.reason)
            raise UsageError(
                f"{workload.id}: with the model's own weights ONNX Runtime leaves the tolerance: "
                f"{told}",
                "choose another class with --tolerance",
            )
        worst = max(worst, *(detail.max_abs or 0.0 for detail in verdict.outputs))
    return (
        "with the model's own weights ONNX Runtime is within tolerance of the truth in "
        f"{_DRAWS} of {_DRAWS} draws (largest difference {worst:.2g})"
    )


def _bundle(result: _Result, watch: Watch) -> str:
    """Makes the bundle; where it is, or why there is none."""
    from edgekernelbench.deploy import Refused, deploy
    from edgekernelbench.deploy import Request as DeployRequest

    request, text = result.request, result.verdict.chosen.text
    folder = request.folder / BUNDLE
    if folder.exists():  # of an earlier, interrupted start: of another kernel
        shutil.rmtree(folder)
    if not request.bundle:
        return ""
    watch.say("making the bundle")
    assert text is not None
    wanted = DeployRequest(
        text=text,
        target=result.target,
        folder=folder,
        workload=result.tasks.whole.workload,
        constants=request.folder / WEIGHTS,
        selftest=True,
    )
    try:
        made = deploy(wanted)
    except UsageError as error:  # the kernel is there all the same
        return f"no bundle: {error.message}; {error.help}"
    if isinstance(made, Refused):
        return f"no bundle: {made.status}: {made.message}"
    log = made.selftest.log.strip().splitlines() if made.selftest is not None else []
    return f"bundle: {folder}" + (f"; self-test: {log[-1]}" if log else "")
