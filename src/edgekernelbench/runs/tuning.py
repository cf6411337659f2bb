"""Tunes the tasks of a subset into a schedule pack, each in a process of its own.

Of its own, because the search runs the compiler on programs that nobody tried before: what crashes
or eats the memory is then one task, and the next one goes on.
"""

from __future__ import annotations

import importlib
import os
import select
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NoReturn

from edgekernelbench.baselines.base import Unavailable
from edgekernelbench.baselines.tuning import Heard, Progress, open_pack, tune_task
from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator.evaluator import device_lock
from edgekernelbench.evaluator.task import InvalidReference, as_task, materials
from edgekernelbench.suite import Workload
from edgekernelbench.targets.model import Target

State = Literal["tuned", "unavailable", "failed"]
SILENCE_S = 1200.0
"""A search that measures no batch for that long is taken to hang."""
_TUNED, _FAILED, _UNAVAILABLE, _REFUSED, _INTERRUPTED = 0, 1, 10, 11, 12
_BEAT = b"\0"


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


def tune(config: TuneConfig, heard: Heard, ended: Callable[[Tuned], None]) -> list[Tuned]:
    """Brings every task to the wanted number of trials; what the pack holds is not done again.

    Nothing is evaluated on the target meanwhile.

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
        with device_lock(config.target):
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
    for module in ("tvm.relax.frontend.onnx", "tvm.s_tir.meta_schedule"):
        importlib.import_module(module)


# ---------------------------------------------------------------- the process that waits
def _apart(workload: Workload, config: TuneConfig, heard: Heard) -> Tuned:
    sys.stdout.flush()
    sys.stderr.flush()
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        _child(workload, config, heard, writer)
    os.close(writer)
    message = None
    try:
        message = _listen(reader)
    finally:
        os.close(reader)
        if message is None:
            os.kill(pid, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return _result(workload.id, code, message)


def _listen(reader: int) -> str | None:
    """What the child says last, or None when it says nothing for too long."""
    said = b""
    while select.select([reader], [], [], SILENCE_S)[0]:
        part = os.read(reader, 1 << 16)
        if not part:
            return said.replace(_BEAT, b"").decode("utf-8", "replace")
        said += part
    return None


def _result(workload: str, code: int, message: str | None) -> Tuned:
    if message is None:
        return Tuned(workload, "failed", f"no batch of trials within {SILENCE_S / 60:.0f} minutes")
    if code == _INTERRUPTED:
        raise KeyboardInterrupt
    if code == _REFUSED:
        raise UsageError(*message.split("\n", 1))
    if code == _TUNED:
        return Tuned(workload, "tuned")
    if code == _UNAVAILABLE:
        return Tuned(workload, "unavailable", message)
    return Tuned(workload, "failed", message or f"the process ended with code {code}")


# ---------------------------------------------------------------- the process that searches
def _child(workload: Workload, config: TuneConfig, heard: Heard, writer: int) -> NoReturn:
    from edgekernelbench.compilers.tvm.tuning.forked import die_with_parent

    def beat(progress: Progress) -> None:
        os.write(writer, _BEAT)
        heard(progress)

    die_with_parent()
    code, message = _outcome(workload, config, beat)
    os.write(writer, message[:4000].encode("utf-8", "replace"))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _outcome(workload: Workload, config: TuneConfig, heard: Heard) -> tuple[int, str]:
    """Exit code and message of the process."""
    try:
        with open_pack(config.pack, config.target) as pack:
            outcome = tune_task(materials(as_task(workload)), pack, config.trials, heard)
    except KeyboardInterrupt:
        return _INTERRUPTED, ""
    except InvalidReference as error:
        return _UNAVAILABLE, str(error)
    except UsageError as error:
        return _REFUSED, f"{error.message}\n{error.help}"
    except BaseException as error:
        return _FAILED, f"{type(error).__name__}: {error}"
    return (_UNAVAILABLE, outcome.reason) if isinstance(outcome, Unavailable) else (_TUNED, "")
