"""Tunes the tasks of a subset into a schedule pack, each in a process of its own.

Of its own, because the search runs the compiler on programs that nobody tried before: what crashes
or eats the memory is then one task, and the next one goes on.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NoReturn

from edgekernelbench.baselines.base import Unavailable
from edgekernelbench.baselines.tuning import Progress, open_pack, tune_task
from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator.task import InvalidReference, as_task, materials
from edgekernelbench.suite import Workload
from edgekernelbench.targets.model import Target

State = Literal["tuned", "unavailable", "failed"]
_TUNED, _UNAVAILABLE, _REFUSED, _INTERRUPTED = 0, 10, 11, 12


@dataclass(frozen=True, slots=True)
class Tuned:
    """How the search for one task ended; why, where there is no complete schedule."""

    workload: str
    state: State
    message: str = ""


@dataclass(frozen=True, slots=True)
class TuneConfig:
    """What to tune, for what, and where the schedules go. ``trials`` is per function."""

    workloads: tuple[Workload, ...]
    target: Target
    pack: Path
    trials: int


def tune(
    config: TuneConfig, heard: Callable[[Progress], None], ended: Callable[[Tuned], None]
) -> list[Tuned]:
    """Brings every task to the wanted number of trials; what the pack holds is not done again.

    Args:
        heard: is told where a search stands, in the process that searches.
        ended: is told how a task ended.

    Raises:
        UsageError: the target cannot be tuned for here, or the pack cannot be used.
        KeyboardInterrupt: what was measured so far is kept.
    """
    _check(config.target)
    with open_pack(config.pack, config.target):
        pass  # says at once what is wrong with it
    _preload()
    results = []
    for workload in config.workloads:
        result = _apart(workload, config, heard)
        ended(result)
        results.append(result)
    return results


def _check(target: Target) -> None:
    if target.backend != "llvm" or target.mtriple is not None:
        raise UsageError(f"target {target.name!r} cannot be tuned here", "tune for llvm, this host")


def _preload() -> None:
    """Imports the compiler once; each task's process is a fork of this one."""
    # With PyTorch installed TVM would import it, too: three seconds for nothing.
    sys.modules.setdefault("torch", None)  # type: ignore[arg-type]
    import edgekernelbench.compilers.tvm.tuning.search  # noqa: F401


def _apart(workload: Workload, config: TuneConfig, heard: Callable[[Progress], None]) -> Tuned:
    sys.stdout.flush()
    sys.stderr.flush()
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        _child(workload, config, heard, writer)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        message = pipe.read().decode("utf-8", "replace")
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code == _INTERRUPTED:
        raise KeyboardInterrupt
    if code == _REFUSED:
        raise UsageError(*message.split("\n", 1))
    if code == _TUNED:
        return Tuned(workload.id, "tuned")
    if code == _UNAVAILABLE:
        return Tuned(workload.id, "unavailable", message)
    return Tuned(workload.id, "failed", message or f"the process ended with code {code}")


def _child(
    workload: Workload, config: TuneConfig, heard: Callable[[Progress], None], writer: int
) -> NoReturn:
    from edgekernelbench.compilers.tvm.tuning.forked import die_with_parent

    code, message = 1, ""
    try:
        die_with_parent()
        with open_pack(config.pack, config.target) as pack:
            outcome = tune_task(materials(as_task(workload)), pack, config.trials, heard)
        code = _TUNED
        if isinstance(outcome, Unavailable):
            code, message = _UNAVAILABLE, outcome.reason
    except KeyboardInterrupt:
        code = _INTERRUPTED
    except InvalidReference as error:
        code, message = _UNAVAILABLE, str(error)
    except UsageError as error:
        code, message = _REFUSED, f"{error.message}\n{error.help}"
    except BaseException as error:
        message = f"{type(error).__name__}: {error}"
    os.write(writer, message[:4000].encode("utf-8", "replace"))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
