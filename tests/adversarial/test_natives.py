"""Hostile processes under the real sandbox: each ends in its status, leaves nothing behind, and
harms neither the next evaluation nor the baseline beside it."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from edgekernelbench.evaluator import landlock
from edgekernelbench.evaluator.evaluator import Evaluator
from edgekernelbench.evaluator.folders import scratch_folder
from edgekernelbench.evaluator.machinery import RunnerPlug
from edgekernelbench.evaluator.model import TOO_BUSY, Evaluation
from edgekernelbench.evaluator.session import TaskSession
from tests.adversarial import builds, tricks
from tests.adversarial.natives import NATIVES, NEEDS_LANDLOCK
from tests.evaluator.fakes import MACHINERY, FakeTask, make_evaluator

HERE = "tests.adversarial.children"
MAY_BE_EXCUSED = frozenset(("forger_at_work",))
"""By a busy machine: then they are not scored either."""


@pytest.fixture(scope="module")
def evaluator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evaluator]:
    plugs = replace(
        MACHINERY,
        runners={"tvm-library": RunnerPlug("run", f"{HERE}:Runner")},
        baselines={"neighbour": f"{HERE}:NEIGHBOUR"},
        build_kernel=f"{HERE}:build_kernel",
    )
    cache = tmp_path_factory.mktemp("cache")
    with make_evaluator(cache, plugs, compile_s=3.0, run_s=0.3, baselines=("neighbour",)) as made:
        yield made


@pytest.fixture(scope="module")
def session(evaluator: Evaluator) -> Iterator[TaskSession]:
    with evaluator.session(FakeTask()) as made:
        yield made


@pytest.fixture
def about(tmp_path: Path, evaluator: Evaluator) -> Iterator[dict[str, str]]:
    """What some tricks need to know: places that exist, and that they may not reach."""
    records, daemon = tmp_path / "records.jsonl", tmp_path / "daemon"
    records.write_text("{}\n")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(daemon))
        listening.listen()
        file, cache = str(records), str(evaluator.cache_dir)
        yield {
            "records": file, "build_records": file, "build_link": file, "build_library_link": file,
            "home": str(Path.home()), "cache": cache, "build_cache": cache,
            "local_daemon": str(daemon),
        }  # fmt: skip


def neighbour_is_well(result: Evaluation) -> bool:
    return result.status == "correct" and result.baselines["neighbour"].status == "measured"


def left_behind() -> list[Path]:
    """Folders of kernels; that of a killed server's temporary files may wait for the end."""
    return list(scratch_folder("test").parent.glob("kernel-*"))


@pytest.mark.parametrize("name", NATIVES)
def test_native(session: TaskSession, about: dict[str, str], name: str) -> None:
    if name in NEEDS_LANDLOCK and not landlock.version():
        pytest.skip("this system has no Landlock")
    exploit = NATIVES[name]
    result = session.evaluate(f"{exploit.given} {about.get(name, '')}")
    assert not left_behind(), "its folder outlives it"
    after = session.evaluate("right")
    if name in MAY_BE_EXCUSED and result.status == "infra_error":
        assert TOO_BUSY in result.message and neighbour_is_well(after)
        return
    assert result.status == exploit.status, result.message
    assert exploit.says in result.message
    assert result.performance is None
    assert Evaluation.model_validate_json(result.model_dump_json()) == result, "a record holds it"
    assert neighbour_is_well(after), after.message


def test_right(session: TaskSession) -> None:
    """Without a trick the same process is correct, so that what fails is the trick."""
    assert neighbour_is_well(session.evaluate("right"))


def test_every_trick_is_used() -> None:
    assert NATIVES.keys() == {*tricks.ALL, *builds.ALL}
