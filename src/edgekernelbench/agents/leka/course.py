"""One attempt as a state machine: observe, route, propose, screen, fill, measure, keep, go back."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal

from edgekernelbench.agents.base import Answer, Device, Task
from edgekernelbench.agents.base import Refused as Spent
from edgekernelbench.agents.leka.archive import Archive, Branch, Measured
from edgekernelbench.agents.leka.fill import fill
from edgekernelbench.agents.leka.layers import Layer, Patch, Refused
from edgekernelbench.agents.leka.observe import Observation, observe
from edgekernelbench.agents.leka.propose import Proposal, Proposer, Situation
from edgekernelbench.agents.leka.route import Route, route
from edgekernelbench.agents.leka.screen import Screen, Screened, surely_slower
from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator.stages import StageProfile
from edgekernelbench.ir.parse import parse
from edgekernelbench.lowering.holes import find_holes
from edgekernelbench.records.schema import Step
from edgekernelbench.targets.peaks import load_peaks

_MOST = 1000
"""Rounds, alternatives and the like that an option may ask for."""


@dataclass(frozen=True, slots=True)
class Options:
    """What decides the course beside seed and budget.

    Attributes:
        mode: ``score``: from the task's statement alone, as other agents; ``optimise``: from the
            canonical program.
        rounds: of proposals at most.
        alternatives: asked for in each.
        patience: rounds without a gain after which a layer is dry.
        layers: patches to one layer; off: whole kernels.
        screen: candidates are interpreted and estimated; off: only built.
        holes: numbers are filled in by measurements; off: first choices.
        archive: other compute forms are kept and taken up again; off: only the best is.
        report: the model sees the static report.
        learn: what helped is told in later tasks of the run.
        profile: the time of a new best kernel is measured by nest, where it has several; each
            profile is an evaluation of the budget.
    """

    mode: Literal["score", "optimise"] = "score"
    rounds: int = 24
    alternatives: int = 3
    patience: int = 2
    layers: bool = True
    screen: bool = True
    holes: bool = True
    archive: bool = True
    report: bool = True
    learn: bool = False
    profile: bool = False

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Options:
        """The options that differ from the usual ones, as words.

        Raises:
            UsageError: an option is unknown, or its value is none.
        """
        usual = cls()
        return replace(usual, **{name: _value(usual, name, word) for name, word in given.items()})

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def _value(usual: Options, name: str, word: str) -> Any:
    kinds = {field.name: getattr(usual, field.name) for field in fields(usual)}
    if name not in kinds:
        raise UsageError(f"leka has no option {name!r}", f"options: {', '.join(kinds)}")
    kind = kinds[name]
    if isinstance(kind, bool):
        known = {"on": True, "off": False}
    elif isinstance(kind, int):
        known = {word: int(word)} if word.isdecimal() and 0 < int(word) <= _MOST else {}
    else:
        known = {mode: mode for mode in ("score", "optimise")}
    if word not in known:
        wanted = ", ".join(known) if known else f"a number from 1 to {_MOST}"
        raise UsageError(f"{name}={word!r} is no value of this option", f"give {wanted}")
    return known[word]


@dataclass(slots=True)
class Counts:
    """What became of proposals: ``refused`` and ``slow`` ones never reached the device."""

    proposed: int = 0
    refused: int = 0
    repeated: int = 0
    slow: int = 0
    measured: int = 0


_MOST_MISSES = 6
"""Answers that hold nothing: the next one will not either."""


class Course:
    """The attempt; `run` once.

    Args:
        notes: what helped on other tasks of the run; grows where the options say so.
    """

    def __init__(
        self,
        task: Task,
        device: Device,
        proposer: Proposer,
        options: Options,
        seed: int,
        notes: list[str] | None = None,
    ) -> None:
        self.task = task
        self.device = device
        self.proposer = proposer
        self.options = options
        self.notes = [] if notes is None else notes
        self.counts = Counts()
        peaks, screening = load_peaks(self.task.target), self.options.screen
        self._screen = Screen(self.task, self.device, peaks, screening)
        self._archive = Archive()
        self._profiles: dict[str, StageProfile | None] = {}  # by text
        self._rng = random.Random(seed)
        self._told: list[str] = []  # to the author, the newest last
        self._spent = ""
        self._misses = 0  # answers without a proposal, one after the other

    # ------------------------------------------------------------ states
    def run(self) -> Answer:
        """Works until the budget, the rounds or all layers of all branches are used up."""
        if self.options.mode == "optimise":
            self._start(self.task.workload.canonical())
        for _ in range(self.options.rounds):
            if self._spent or not self._round():
                break
        best = self._archive.best
        why = self._spent or "nothing is left to revise"
        self._note("stop", reason=f"{why}; {_said(self.counts)}")
        if best is None:
            return Answer(self._unmeasured(), why)
        return Answer(best.text, why)

    def _start(self, text: str) -> None:
        kernel = parse(text).kernel
        assert kernel is not None, "the canonical program parses"
        screened = self._screen.kernel(kernel, trusted=True)
        if isinstance(screened, Screened):
            self._enter(screened)
            self._measure(screened, Route("compute", "the canonical program"))

    def _round(self) -> bool:
        """One revision; False when there is nothing more to revise."""
        branch = self._branch()
        seen = None if branch is None else self._observed(branch)
        if branch is not None and seen is None:
            return self._go_back("looking at this compute form takes too long")
        if seen is None:
            way: Route | None = Route("compute", "there is no kernel yet", "begin")
        else:
            way = route(seen, self.options.patience)
        if way is None:
            return self._go_back("every layer of this compute form is dry")
        if not self.proposer.trusted:  # a move names its layer itself
            self._note("route", way.layer, f"{way.rule}: {way.reason}")
        head = None if branch is None else branch.head
        situation = Situation(self.task, way, head, seen, self._told, self.notes)
        proposals = self.proposer.propose(situation)
        if isinstance(proposals, Spent):
            self._spent = proposals.message
            return False
        if not proposals and self.proposer.trusted:
            return False
        gained = self._try(proposals, way, branch)
        if branch is not None and not gained:
            self._archive.spent(branch, way.layer)
        return True

    def _branch(self) -> Branch | None:
        current = self._archive.current
        return current if current is not None and not current.dead else self._enter_next()

    def _enter_next(self) -> Branch | None:
        """The most promising living branch; what was never measured is measured first."""
        for branch in self._archive.alive():
            self._archive.current = branch
            if branch.best is None and not self._spent:
                self._measure(branch.root, Route("compute", "another compute form is taken up"))
                if branch.best is None:
                    branch.dead = True
                    continue
            return branch
        self._archive.current = None
        return None

    def _observed(self, branch: Branch) -> Observation | None:
        """What is known of the head of a branch; None where that cannot be had in time."""
        report = self._screen.explained(branch.head)
        if report is None:
            return None
        return observe(self.task, branch, report, self._profile(branch))

    def _profile(self, branch: Branch) -> StageProfile | None:
        """The time of a head by nest, measured once where the options want it and its nests are
        several. The last evaluation is not spent on it: nothing could come of what it says."""
        head, left = branch.head, self.device.budget.evaluations_left
        parts = () if head.estimate is None else head.estimate.parts
        known = head.text in self._profiles
        wanted = self.options.profile and not self.proposer.trusted and branch.best is not None
        if wanted and not known and len(parts) > 1 and (left is None or left > 1):
            found = self.device.profile(head.text)
            self._profiles[head.text] = found if isinstance(found, StageProfile) else None
        return self._profiles.get(head.text)

    def _go_back(self, why: str) -> bool:
        """Gives the present branch up; False when there is no other."""
        current = self._archive.current
        assert current is not None
        current.dead = True
        self._note("back", reason=why)
        return self.options.archive and self._enter_next() is not None

    def _enter(self, screened: Screened) -> Branch:
        branch = self._archive.begin(screened)
        self._archive.current = branch
        return branch

    # ------------------------------------------------------------ proposals
    def _try(self, proposals: list[Proposal], way: Route, branch: Branch | None) -> bool:
        """Screens alternatives, measures those that pass; whether the attempt's best improved."""
        before = self._best_us()
        self._misses = 0 if proposals else self._misses + 1
        if not proposals:
            self._told.append(self.proposer.missed)
            self._note("screen", way.layer, " ".join(self.proposer.missed.split())[:200])
        if self._misses == _MOST_MISSES:
            self._spent = f"{_MOST_MISSES} answers one after the other held no layer"
        for proposal in proposals:
            self.counts.proposed += 1
            screened = self._screened(proposal, way, branch)
            if screened is None:
                continue
            if self._spent:
                break
            layer = proposal[0].layer if proposal else way.layer
            self._take(screened, replace(way, layer=layer, reason=_reason(proposal, way)), proposal)
        return self._best_us() < before

    def _screened(self, proposal: Proposal, way: Route, branch: Branch | None) -> Screened | None:
        if branch is not None:
            base = branch.head.kernel
        else:
            header = parse(f"{self.task.workload.header()} {{ compute {{ }} }}").kernel
            assert header is not None, "a task's header parses"
            base = header
        found = self._screen.patch(base, proposal, self.proposer.trusted)
        if isinstance(found, Refused):
            self.counts.refused += 1
            self._told.append(f"refused: {_first_line(proposal)}\n{found.told}")
            self._note("screen", way.layer, found.told.splitlines()[0][:200])
            return None
        if not self._archive.is_new(found):
            self.counts.repeated += 1
            self.proposer.learn(proposal, self._archive.times[found.text])
            self._told.append(f"the same kernel as before: {_first_line(proposal)}")
            return None
        return self._unless_slow(found, proposal, way)

    def _unless_slow(self, found: Screened, proposal: Proposal, way: Route) -> Screened | None:
        best = self._archive.best
        if best is None or not self.options.screen or self.proposer.trusted:
            return found
        times = surely_slower(found, best.screened)
        if times is None:
            return found
        self.counts.slow += 1
        said = f"estimated at {times:.1f} times the time of the best one"
        self._told.append(f"not measured: {_first_line(proposal)}: {said}")
        self._note("screen", way.layer, said)
        return None

    def _take(self, screened: Screened, way: Route, proposal: Proposal) -> None:
        """Measures a candidate and, where it has holes, variants of it."""
        if screened.form not in self._archive.branches and self._archive.best is not None:
            self._archive.begin(screened)
        if self._archive.current is None:
            self._enter(screened)
        us = self._measure(screened, way, proposal)
        if self.options.holes and us is not None and find_holes(screened.kernel):
            left = self.device.budget.evaluations_left
            share = 8 if left is None else max(1, left // 3)
            fill(screened, self._screen, self._rng, lambda one: self._variant(one, way), share)

    def _variant(self, screened: Screened, way: Route) -> float | None:
        if self._spent or not self._archive.is_new(screened):
            return None
        return self._measure(screened, replace(way, reason=f"{way.reason}; other numbers"))

    def _measure(self, screened: Screened, way: Route, proposal: Proposal = ()) -> float | None:
        """Evaluates; files what came of it. None where it is not correct."""
        before = self._best_us()
        result = self.device.evaluate(
            screened.text,
            way.reason,
            layer=way.layer,
            patch="\n".join(patch.text for patch in proposal) or None,
            before_us=None if before == math.inf else before,
        )
        if isinstance(result, Spent):
            self._spent = result.message
            return None
        self.counts.measured += 1
        measured = Measured(screened, result)
        self._archive.tell(measured)
        us = measured.us
        self.proposer.learn(proposal, us)
        if us is not None and us < before:
            self._keep(measured, way, before)
        else:
            said = (
                f"takes {us:.4g} us"
                if us is not None
                else f"{result.status.value} {result.message}"
            )
            self._told.append(f"not kept: {_first_line(proposal) or way.reason}: {said}")
        return us

    def _keep(self, measured: Measured, way: Route, before: float) -> None:
        us = measured.us
        assert us is not None
        self._archive.current = self._archive.begin(measured.screened)
        gain = "" if before == math.inf else f", {before / us:.2f} times as fast as before"
        self._told.append(f"kept: {way.reason}: {us:.4g} us{gain}")
        if self.options.learn and gain:
            self.notes.append(f"{self.task.workload.family}, {way.layer}: {way.reason}{gain}")
        step = Step(
            action="keep",
            seconds=round(self.device.budget.seconds, 3),
            layer=way.layer,
            reason=way.reason,
            median_us=us,
            kernel_hash=measured.evaluation.kernel_hash,
        )
        self.device.note(step)

    # ------------------------------------------------------------ small things
    def _best_us(self) -> float:
        best = self._archive.best
        return math.inf if best is None or best.us is None else best.us

    def _unmeasured(self) -> str | None:
        """What to answer with when nothing was found correct: the newest that could be measured."""
        branches = list(self._archive.branches.values())
        return branches[-1].root.text if branches else None

    def _note(self, action: str, layer: Layer | None = None, reason: str = "") -> None:
        seconds = round(self.device.budget.seconds, 3)
        self.device.note(Step(action=action, seconds=seconds, layer=layer, reason=reason))


def _first_line(proposal: Proposal) -> str:
    patches: list[Patch] = [patch for patch in proposal if patch.text]
    if not patches:
        return ""
    reason = next((patch.reason for patch in patches if patch.reason), "")
    return reason or " ".join(patches[0].text.split())[:120]


def _reason(proposal: Proposal, way: Route) -> str:
    return next((patch.reason for patch in proposal if patch.reason), way.reason)


def _said(counts: Counts) -> str:
    return ", ".join(f"{number} {what}" for what, number in asdict(counts).items())
