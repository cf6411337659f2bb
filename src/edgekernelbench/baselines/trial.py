"""Which of several builds of a task runs faster, tried in a process of its own.

A process of its own, because a kernel's first parallel loop starts threads, after which the process
can no longer be forked. It is forked from the one that compiled, where the run-time library is
loaded already: loading takes longer than the trial.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from edgekernelbench.baselines.base import Port, Unavailable

TIMEOUT_S = 60.0
_ROUNDS = 5
_ROUND_S = 0.02
_BUDGET_S = 4.0


class _Message(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TrialJob(_Message):
    """Folders that `TvmCompiler` filled, for one task. Constants that are no ports are drawn."""

    folders: tuple[Path, ...]
    ports: tuple[Port, ...]


class TrialReply(_Message):
    """Microseconds of one call of each build."""

    call_us: tuple[float, ...]


def compare(job: TrialJob, threads: int) -> TrialReply | Unavailable:
    """Times the builds, interleaved, on data that is drawn for the purpose."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        _child(job, threads, writer)
    os.close(writer)
    try:
        said = _read_all(reader, TIMEOUT_S)
    finally:
        os.close(reader)
    if said is None:  # a compile child may send no signals; its end ends its process group
        return Unavailable(f"no comparison within {TIMEOUT_S:.0f} s")
    os.waitpid(pid, 0)
    try:
        return TrialReply.model_validate_json(said)
    except ValidationError:
        lines = said.decode("utf-8", "replace").strip().splitlines() or ["it ended without a word"]
        return Unavailable(f"no comparison: {lines[-1][:200]}")


def _read_all(reader: int, seconds: float) -> bytes | None:
    """All that comes until the other end closes, or None when that takes too long."""
    said = b""
    deadline = time.monotonic() + seconds
    while select.select([reader], [], [], max(0.0, deadline - time.monotonic()))[0]:
        part = os.read(reader, 1 << 16)
        if not part:
            return said
        said += part
    return None


# ---------------------------------------------------------------- in the process of its own
def _child(job: TrialJob, threads: int, writer: int) -> NoReturn:
    """Writes the reply, or why there is none, and ends the process without any cleaning up."""
    try:
        os.environ |= {"TVM_NUM_THREADS": str(threads), "TVM_BIND_THREADS": "0"}
        os.write(writer, run(job).model_dump_json().encode())
    except BaseException as error:
        os.write(writer, f"{type(error).__name__}: {error}".encode())
    finally:
        os._exit(0)


def run(job: TrialJob) -> TrialReply:
    """Binds each build to the same inputs and times them in turn."""
    from edgekernelbench.compilers.tvm.execute import LoadedKernel, aligned_empty

    rng = np.random.default_rng(0)
    arrays = {port.name: aligned_empty(port.shape, port.dtype) for port in job.ports}
    for array in arrays.values():
        _fill(array, rng)
    calls: list[Callable[[], None]] = []
    for folder in job.folders:
        kernel = LoadedKernel(folder)
        consts = {a.name: a for a in kernel.manifest.arguments if a.role == "const"}
        drawn = {name: aligned_empty(a.shape, a.dtype) for name, a in consts.items()}
        for array in drawn.values():
            _fill(array, rng)
        roles = {port.name: arrays[port.name] for port in job.ports if port.role != "const"}
        calls.append(kernel.bind(roles, drawn, roles))
    return TrialReply(call_us=tuple(_times(calls)))


def _fill(array: np.ndarray, rng: np.random.Generator) -> None:
    """Ordinary numbers: floats around 0, small whole numbers."""
    if array.dtype.kind == "f":
        array[...] = rng.uniform(-1.0, 1.0, array.shape)
    elif array.dtype.kind == "b":
        array[...] = rng.integers(0, 2, array.shape)
    else:
        array[...] = rng.integers(0, 4, array.shape)


def _times(calls: list[Callable[[], None]]) -> list[float]:
    """The least of some interleaved means, each over enough calls for the clock."""
    best = [float("inf")] * len(calls)
    began = time.perf_counter()
    counts = [_count(call) for call in calls]
    for _ in range(_ROUNDS):
        for k, call in enumerate(calls):
            best[k] = min(best[k], _mean_us(call, counts[k]))
        if time.perf_counter() - began > _BUDGET_S:
            break
    return best


def _count(call: Callable[[], None]) -> int:
    call()
    return max(1, min(10_000, int(_ROUND_S * 1e6 / max(1.0, _mean_us(call, 1)))))


def _mean_us(call: Callable[[], None], count: int) -> float:
    began = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - began) * 1e6 / count
