"""Turns at the device go to who came first, or to a task that is warm, and starve nobody."""

from __future__ import annotations

import threading
import time

import pytest

from edgekernelbench.runs.turns import MOST_OVERTAKEN, Turns


def order_of(turns: Turns, tasks: list[str], warm: set[str]) -> list[str]:
    """In which order they have their turns that come, one after the other, while it is taken."""
    had: list[str] = []

    def take(task: str) -> None:
        with turns.turn(task, warm):
            had.append(task)

    threads = []
    with turns.turn(None, warm):
        for count, task in enumerate(tasks, 1):
            threads.append(threading.Thread(target=take, args=(task,)))
            threads[-1].start()
            while len(turns._waiting) < count:
                time.sleep(0.001)
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()
    return had


def test_first_come_first_served() -> None:
    assert order_of(Turns(), ["a", "b", "a", "c"], set()) == ["a", "b", "a", "c"]


def test_warm_tasks_go_before() -> None:
    assert order_of(Turns(), ["a", "b", "c", "b"], {"b"}) == ["b", "b", "a", "c"]


def test_nobody_is_overtaken_for_ever() -> None:
    tasks = ["a", *["b"] * (MOST_OVERTAKEN + 5)]
    assert order_of(Turns(), tasks, {"b"}).index("a") == MOST_OVERTAKEN


def test_who_gives_up_waiting_or_fails_leaves_the_turn_to_others() -> None:
    turns = Turns()
    with pytest.raises(KeyError), turns.turn("a", ()):
        raise KeyError
    assert order_of(turns, ["a"], set()) == ["a"]
