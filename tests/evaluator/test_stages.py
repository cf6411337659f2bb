"""Profiles by nest: the parts of a loop program, and their times beside the plain build's."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgekernelbench.compilers.tvm.stages import CLOCK, TimedPart, instrumented
from edgekernelbench.evaluator.evaluator import Evaluator
from edgekernelbench.evaluator.session import TaskSession
from edgekernelbench.evaluator.settings import EvalSettings
from edgekernelbench.evaluator.stages import NoProfile, StageProfile, _None, _Pair
from edgekernelbench.evaluator.task import as_task
from edgekernelbench.lowering import nest
from edgekernelbench.suite import load_suite
from edgekernelbench.targets.host import host_target
from tests.lowering.support import load_text, must_lower

SOFTMAX = """kernel softmax_last[M=%d, C=%d](x: f32[M, C]) -> (y: f32[M, C]) {
  compute {
    mx[m: M] = max[c: C](x[m, c])
    e[m: M, c: C] = exp(x[m, c] - mx[m])
    s[m: M] = sum[c: C](e[m, c])
    y[m, c] = e[m, c] / s[m]
  }
  %s
}"""
SCAN = """kernel k(x: f32[8, 16]) -> (y: f32[8, 16]) {
  compute {
    a[t: 8, i: 16] = exp(x[t, i])
    seq t: 8 {
      b[t, i: 16] = a[t, i] + (b[t - 1, i] if t > 0 else 0)
      c[t, i: 16] = tanh(b[t, i])
    }
    y[t, i] = c[t, i] + exp(a[t, i])
  }
  schedule for cpu { loops a (t, i) loops y (t, i) }
}"""


def module(text: str) -> nest.Module:
    found = must_lower(*load_text(text), host_target()).module
    assert found is not None
    return found


def labels(text: str) -> list[tuple[str, tuple[str, ...]]]:
    return [(part.label, part.stages) for part in nest.parts(module(text).main.body)]


# ---------------------------------------------------------------- the parts
def test_stages_computed_inside_of_others_are_told_with_their_host() -> None:
    placed = "schedule for cpu { loops y (m, c)  place mx, s in y.m  place e in y.m }"
    assert labels(SOFTMAX % (4, 8, placed)) == [("y", ("y", "mx", "e", "s"))]
    apart = "schedule for cpu { loops e (m, c)  loops y (m, c) }"
    assert [label for label, _ in labels(SOFTMAX % (4, 8, apart))] == ["mx", "e", "s", "y"]


def test_a_loop_is_one_part_with_all_that_is_in_it() -> None:
    found = labels(SCAN)
    assert ("loop t", ("b", "c")) in found
    assert [label for label, _ in found] == ["a", "loop t", "y"]


@pytest.mark.parametrize("text", [SOFTMAX % (4, 8, ""), SCAN], ids=["softmax", "scan"])
def test_the_instrumented_program_is_the_plain_one_with_readings(text: str) -> None:
    plain = module(text)
    timed, parts = instrumented(plain)
    stamps = [s for s in nest.statements(timed.main.body) if isinstance(s, nest.Stamp)]
    assert [stamp.place for stamp in stamps] == list(range(len(parts) + 2))
    assert timed.main.params[:-1] == plain.main.params and timed.main.params[-1].name == CLOCK
    others = [
        s for s in nest.statements(timed.main.body) if not isinstance(s, nest.Stamp | nest.Seq)
    ]
    assert others == [s for s in nest.statements(plain.main.body) if not isinstance(s, nest.Seq)]


# ---------------------------------------------------------------- measured
@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TaskSession]:
    settings = EvalSettings(roofline=False, baselines=(), measure_s=0.1)
    cache = tmp_path_factory.mktemp("cache")
    task = as_task(load_suite().workloads["softmax_last__02"])
    with (
        Evaluator(host_target(), settings=settings, cache_dir=cache) as evaluator,
        TaskSession(evaluator, task, ()) as made,
    ):
        yield made


def _text(session: TaskSession, value: str, schedule: str = "") -> str:
    body = SOFTMAX.partition("{")[2] % schedule
    return f"{session.task.header()} {{{body}".replace("exp(x[m, c] - mx[m])", value)


def test_the_slow_stage_holds_the_time(session: TaskSession) -> None:
    slow = "exp(x[m, c] - mx[m])" + " + 0 * exp(sin(tanh(erf(tan(x[m, c])))))" * 2
    apart = "schedule for cpu { loops e (m, c)  loops y (m, vectorize c) }"
    found = session.profile(_text(session, slow, apart))
    assert isinstance(found, StageProfile), found
    assert [part.label for part in found.parts] == ["mx", "e", "s", "y"]
    assert max(found.parts, key=lambda part: part.share).label == "e"
    assert sum(part.share for part in found.parts) == pytest.approx(1)
    assert sum(part.median_us for part in found.parts) < 1.5 * found.timed_us
    assert found.rounds >= 7 and found.overhead > 0 and found.clock_us > 0


@pytest.mark.parametrize(
    ("value", "says"),
    [("exp(x[m, q])", "not built"), ("exp(x[m, c]) * 0.5 + 1", "results are wrong")],
)
def test_what_is_no_kernel_of_the_task_has_none(
    session: TaskSession, value: str, says: str
) -> None:
    found = session.profile(_text(session, value))
    assert isinstance(found, NoProfile) and says in found.message


# ---------------------------------------------------------------- what processes claim
class Claims:
    """A process that says what it is told to say."""

    def __init__(self, took: int, readings: list[int]) -> None:
        self._took, self._readings = took, np.array(readings, np.int64)
        self.layout = self

    def run(self, _samples: Any) -> list[int]:
        return [self._took]

    def outputs_region(self) -> np.ndarray:
        return self._readings

    def views(self, region: np.ndarray) -> dict[str, np.ndarray]:
        return {CLOCK: region}

    def look(self, _number: int) -> None:
        pass


class Sets:
    sets = (0, 1, 2)


def _pair(readings: list[int]) -> _Pair:
    parts = [TimedPart(label=name, stages=(name,)) for name in ("a", "b")]
    both: Any = [Claims(1000, []), Claims(1200, readings)]
    pool: Any = Sets()
    return _Pair(parts, both, both, pool, random.Random(0), 0.0)


def test_a_reading_is_taken_off_each_nest() -> None:
    found = _pair([5, 25, 345, 525]).measured()
    assert [part.median_us for part in found.parts] == [0.3, 0.16]
    assert found.clock_us == 0.02 and found.overhead == 1.2 and found.call_us == 0.68
    assert found.parts[0].share == pytest.approx(0.3 / 0.46)


@pytest.mark.parametrize("readings", [[5, 25, 20, 525], [5, 25, 345, 1300]])
def test_times_that_cannot_be(readings: list[int]) -> None:
    with pytest.raises(_None, match="cannot be"):
        _pair(readings).measured()


def test_no_profile_on_a_device(session: TaskSession, monkeypatch: pytest.MonkeyPatch) -> None:
    class Elsewhere:
        target = session.evaluator.target.model_copy(update={"backend": "opencl"})

    other: Any = TaskSession(session.evaluator, session.task, ())
    monkeypatch.setattr(other, "evaluator", Elsewhere())
    from edgekernelbench.evaluator.stages import profile

    found = profile(other, "")
    assert isinstance(found, NoProfile) and "host's processor" in found.message


def test_a_list_of_nests_from_the_child_is_data(tmp_path: Path) -> None:
    from edgekernelbench.evaluator.stages import _parts
    from edgekernelbench.evaluator.worker import ChildLost

    for text in ("[]", '{"parts": [{"label": 1}]}', "{"):
        (tmp_path / "parts.json").write_text(text)
        with pytest.raises(ChildLost):
            _parts(tmp_path)
