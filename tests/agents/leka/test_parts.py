"""The parts of LEKA, each without a model: screen, observe, route, archive, fill."""

from __future__ import annotations

import random
from dataclasses import replace
from types import SimpleNamespace

import pytest

from edgekernelbench.agents.leka.archive import Archive, Measured
from edgekernelbench.agents.leka.fill import fill
from edgekernelbench.agents.leka.layers import Patch, Refused
from edgekernelbench.agents.leka.listing import shortened
from edgekernelbench.agents.leka.observe import Observation, observe
from edgekernelbench.agents.leka.route import RULES, Route, route
from edgekernelbench.agents.leka.screen import Screen, Screened
from edgekernelbench.agents.leka.shares import Shares
from edgekernelbench.evaluator.stages import PartTime, StageProfile
from edgekernelbench.ir.parse import parse
from edgekernelbench.ir.surface import Kernel
from tests.agents.leka.support import SOFTMAX, Bench, task
from tests.factories import correct, performance


def base() -> Kernel:
    parsed = parse(task().workload.canonical()).kernel
    assert parsed is not None
    return parsed


@pytest.fixture
def screen() -> Screen:
    return Screen(task(), Bench(0).device(), None)


def screened(screen: Screen, *patches: Patch) -> Screened:
    found = screen.patch(base(), patches)
    assert isinstance(found, Screened), found
    return found


# ---------------------------------------------------------------- screen
WRONG = SOFTMAX.replace("/ s[m]", "/ s[m] + 0.1")


@pytest.mark.parametrize(
    ("layer", "text", "told"),
    [
        ("compute", WRONG, "wrong results at M=5, C=7"),
        ("compute", SOFTMAX.replace("mx[m]", "mx[m + 1]"), "error"),
        ("schedule", "schedule for cpu { loops y (parallel q) }", "E410"),
        ("schedule", "schedule for cpu { loops z (m) }", "error"),
        ("memory", "memory for cpu { layout y [m, c] -> [c, m] }", "error"),
    ],
)
def test_what_cannot_be_measured_is_refused(screen: Screen, layer, text: str, told: str) -> None:
    found = screen.patch(base(), (Patch(layer, text),))
    assert isinstance(found, Refused) and told in found.told


def test_layers_that_no_longer_fit_a_new_compute_layer_go(screen: Screen) -> None:
    scheduled = screened(screen, Patch("schedule", "schedule for cpu { loops e (m, c) }"))
    other = SOFTMAX.replace("e[", "power[")
    found = screen.patch(scheduled.kernel, (Patch("compute", other),))
    assert isinstance(found, Screened) and not found.kernel.schedules


def test_a_wrong_compute_layer_is_told_and_not_that_the_others_no_longer_fit(
    screen: Screen,
) -> None:
    placed = screened(screen, Patch("schedule", "schedule for cpu { place s in y.m }"))
    wrong = SOFTMAX.replace("e[m, c] / s[m]", "e[m, c] / mx[m]")
    found = screen.patch(placed.kernel, (Patch("compute", wrong),))
    assert isinstance(found, Refused) and found.told.startswith("wrong results")


def test_what_fits_only_the_sizes_of_the_task_is_interpreted_at_them(screen: Screen) -> None:
    sizes = task().workload.bindings
    right = SOFTMAX.replace("/ s[m]", "/ s[m] + 0 * x[m, 100]")
    wrong = right.replace("/ s[m]", "/ s[m] + 0.1")
    assert isinstance(screen.patch(base(), (Patch("compute", right),)), Screened)
    found = screen.patch(base(), (Patch("compute", wrong),))
    assert isinstance(found, Refused) and found.told.startswith("wrong results")
    assert f"M={sizes['M']}" in found.told


def test_what_is_not_interpreted_says_so(screen: Screen) -> None:
    stage = "compute {\n  t[p: 30000, q: 30000] = x[p % M, q % C]"
    huge = SOFTMAX.replace("compute {", stage).replace("/ s[m]", "/ s[m] + 0 * t[0, 0]")
    found = screen.patch(base(), (Patch("compute", huge),))
    assert isinstance(found, Screened) and found.note == "not interpreted: it stores too much"


def test_estimates_rank_vectors_cores_and_memory(screen: Screen) -> None:
    def us(lines: str) -> float:
        found = screened(screen, Patch("schedule", f"schedule for cpu {{ {lines} }}")).estimate
        assert found is not None and found.us >= found.compute_us
        return found.compute_us

    rows = us("loops y (parallel m by 4, m, vectorize c)\n place mx, e, s in y.m0")
    assert rows < us("loops y (m, vectorize c)\n place mx, e, s in y.m")  # one core
    vectors = us("loops y (m, vectorize c)")
    assert vectors == pytest.approx(us("loops y (m, c)"), rel=0.05)  # LLVM does it unasked
    assert vectors < us("loops y (c, m)")


# ---------------------------------------------------------------- routes
def seen(**facts) -> Observation:
    screen = Screen(task(), Bench(0).device(), None)
    archive = Archive()
    branch = archive.begin(screened(screen))
    report = screen.explained(branch.head)
    assert report is not None
    plain = observe(task(), branch, report)
    about = {"correct": True, "us": 100.0, "scalar": 0.0, "serial": 0.0, "apart": 0.0, **facts}
    return replace(plain, **about)


@pytest.mark.parametrize(
    ("facts", "layer", "by"),
    [
        ({"correct": False}, "compute", "not_correct"),
        (
            {
                "overhead": True,
                "stages": (("y", 0.4), ("v", 0.3), ("m", 0.3)),
                "explanation": SimpleNamespace(workspace_bytes=4096),
            },
            "schedule",
            "nests_of_a_short_call",
        ),
        # it outranks what the nests waste
        (
            {
                "overhead": True,
                "stages": (("y", 0.4), ("v", 0.3), ("m", 0.3)),
                "surplus": 10.0,
                "explanation": SimpleNamespace(workspace_bytes=4096),
            },
            "schedule",
            "nests_of_a_short_call",
        ),
        (
            {
                "overhead": False,
                "stages": (("y", 0.4), ("v", 0.3), ("m", 0.3)),
                "explanation": SimpleNamespace(workspace_bytes=4096),
            },
            "schedule",
            "least_tried",
        ),
        ({"surplus": 3.0}, "compute", "surplus_operations"),
        ({"serial": 0.9}, "schedule", "serial_time"),
        ({"scalar": 0.9}, "schedule", "scalar_time"),
        ({"apart": 0.9}, "memory", "lanes_apart"),
        ({"traffic": 5.0, "bound": "memory"}, "schedule", "repeated_traffic"),
        ({"least_us": 90.0}, "compute", "near_the_roof"),
        ({}, "schedule", "least_tried"),
        ({"scalar": 0.9, "tried": {"schedule": 2}}, "memory", "least_tried"),
        ({"tried": {"schedule": 1}}, "memory", "least_tried"),
    ],
)
def test_the_layer_that_is_due(facts, layer: str, by: str) -> None:
    found = route(seen(**facts))
    assert found is not None and (found.layer, found.rule) == (layer, by) and found.reason


def test_when_all_layers_are_dry_there_is_no_route() -> None:
    assert route(seen(tried={"compute": 2, "schedule": 2, "memory": 2})) is None
    assert {name for name, _ in RULES} >= {"not_correct", "lanes_apart"}
    mine = [("mine", lambda _seen: Route("memory", "because"))]
    assert route(seen(), rules=mine) == Route("memory", "because", "mine")


def test_a_report_is_short() -> None:
    text = seen(us=123.4, speedups={"tvm": 1.5, "ort": 0.5}, rival="ort").text()
    assert "measured: 123.4 us" in text and "0.50 times as fast as ort, the one to beat" in text
    assert len(text) < 4000


# ---------------------------------------------------------------- what was measured by nest
def profiled(screen: Screen, **shares: float) -> Observation:
    """The canonical program, its nests apart, under a profile."""
    apart = "schedule for cpu { loops e (c, m)  loops y (parallel m, vectorize c) }"
    one = screened(screen, Patch("schedule", apart))
    assert one.estimate is not None
    named = [(part.label, part.stages) for part in one.estimate.parts]
    parts = tuple(
        PartTime(label=label, stages=stages, median_us=9, share=shares.get(label, 0.0))
        for label, stages in named
    )
    profile = StageProfile(
        whole_us=9, timed_us=9, overhead=1, clock_us=0, call_us=0, rounds=9, parts=parts
    )
    archive = Archive()
    report = screen.explained(one)
    assert report is not None
    return observe(task(), archive.begin(one), report, profile)


def test_measured_shares_decide_and_not_estimated_ones(screen: Screen) -> None:
    fast, slow = profiled(screen, y=0.97, e=0.03), profiled(screen, y=0.02, e=0.98)
    assert fast.scalar is not None and slow.scalar is not None
    assert fast.scalar < 0.1 and slow.scalar > 0.9 and slow.stages[0] == ("e", 0.98)
    found, other = route(replace(slow, correct=True)), route(replace(fast, correct=True))
    assert found is not None and found.rule == "scalar_time"
    assert other is not None and other.rule != "scalar_time"
    assert "measured time by nest: e 98%" in slow.text() and "estimated" not in slow.text()


def test_a_profile_of_other_nests_does_not_count(screen: Screen) -> None:
    one = screened(screen)
    guess = one.estimate
    assert guess is not None
    other = profiled(screen, y=1.0).profile
    assert other is not None
    parts = other.parts[:-1]
    assert Shares.of(guess, other.model_copy(update={"parts": parts})) == Shares.of(guess, None)


def test_the_slowest_stays_in_a_listing_that_is_cut() -> None:
    quick = [line for k in range(30) for line in (f"for i{k} in 9:", f"  a{k}[i{k}] = 1")]
    slow = ["for t in 99:", "  for j in 9:", "    slow[j] = x[j]", "    other[j] = x[j]"]
    nest = "\n".join([*quick, *slow, "last[0] = 2"])
    cut = shortened(nest, {"slow": 0.9, "a7": 0.05}, 8)
    assert "    slow[j] = x[j]" in cut and "  for j in 9:" in cut and "for t in 99:" in cut
    assert "  a7[i7] = 1" in cut and "... 11 lines left out" in cut
    assert sum("left out" not in line for line in cut) == 8
    assert shortened(nest, {}, 99) == nest.splitlines()


# ---------------------------------------------------------------- archive
def measured(one: Screened, us: float) -> Measured:
    return Measured(one, correct("w", {}, None).model_copy(update={"performance": performance(us)}))


def test_regressions_are_never_kept_and_dead_branches_are_left(screen: Screen) -> None:
    archive = Archive()
    first = screened(screen)
    other = screened(screen, Patch("compute", SOFTMAX.replace("e[", "power[")))
    assert archive.tell(measured(first, 10.0)) and archive.tell(measured(other, 20.0))
    branch = archive.begin(first)
    archive.spent(branch, "schedule")
    slower = screened(screen, Patch("schedule", "schedule for cpu { loops y (c, m) }"))
    assert not archive.tell(measured(slower, 30.0)) and branch.tried == {"schedule": 1}
    assert archive.best is not None and archive.best.us == 10.0 and not archive.is_new(slower)
    branch.dead = True
    assert [b.us for b in archive.alive()] == [20.0]


# ---------------------------------------------------------------- holes
def test_holes_are_filled_within_their_share(screen: Screen) -> None:
    lines = (
        "loops y (parallel m by ?{2, 4, 8, 16, 32, 64}, m, c by ?{16, 32, 64, 128}, vectorize c)"
    )
    holes = screened(screen, Patch("schedule", f"schedule for cpu {{ {lines} }}"))
    asked: list[str] = []

    def us(one: Screened) -> float:
        asked.append(one.text)
        return 1.0 if "by 8" in one.text else 9.0

    assert fill(holes, screen, random.Random(0), us, 9) == 9 == len(set(asked))
    after = asked[next(n for n, text in enumerate(asked) if "by 8" in text) + 1 :]
    assert sum("by 8" in text for text in after) >= len(after) - 4  # far values are given up
    assert fill(screened(screen), screen, random.Random(0), us, 9) == 0


def test_holes_that_take_for_ever_to_lower_are_given_up(
    screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thousands of copies of a body are one choice away, where the first choice has one."""
    lines = "loops y (parallel m by ?{2, 7}, m, c by ?{16, 5}, vectorize c)"
    holes = screened(screen, Patch("schedule", f"schedule for cpu {{ {lines} }}"))
    monkeypatch.setattr("edgekernelbench.agents.leka.screen._VARIANTS_S", 0.0)
    assert screen.variants(holes, lambda total: list(range(total))) == {}
