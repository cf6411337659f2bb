"""Runs that are killed at random: nothing may be lost or doubled. Prints one JSON object.

.venv/bin/python benchmarks/kills.py 500 --out runs/kills

Two runs of half as many evaluations each. In ``children`` random processes below `ekb run` are
killed while it works; in ``parent`` `ekb run` itself is, and the run is taken up with --resume. An
interrupted benchmark goes on where it stopped when it is started again with the same folder. Exits
with 1 if anything was lost, doubled, unreadable or left behind.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from edgekernelbench.records.read import RECORDS, SETTINGS, read_records

WORKLOADS = ("gelu_erf__02", "rope_half_split__01", "cholesky_batched__02", "embedding_bag_sum__01")
KILLS = "kills.jsonl"

_EARLY = 0.25
"""Share of kills of `ekb run` that do not wait for a record."""

_GONE_WITHIN = 20.0
"""Seconds within which the processes of a killed run have to end."""


@dataclass
class Part:
    """One run that is killed until it is finished.

    Attributes:
        folder: of the run, and of the log of kills beside it.
        epochs: of each workload.
        longest: seconds from a new record to a kill, at most.
        complaints: what went wrong.
    """

    folder: Path
    epochs: int
    longest: float
    rng: random.Random
    workloads: tuple[str, ...]
    complaints: list[str] = field(default_factory=list)

    @property
    def run(self) -> Path:
        return self.folder / "run"

    def command(self) -> list[str]:
        named = [part for w in self.workloads for part in ("--workload", w)]
        resume = ["--resume"] if (self.run / SETTINGS).exists() else []
        return [
            sys.executable, "-m", "edgekernelbench.cli", "run", "--agent", "canonical",
            "--evals", "1", "--epochs", str(self.epochs), *named, "--out", str(self.run), *resume,
        ]  # fmt: skip

    def start(self) -> subprocess.Popen[bytes]:
        """`ekb run`, with temporary files of its own, so that those it leaves can be counted."""
        (self.folder / "tmp").mkdir(parents=True, exist_ok=True)
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                self.command(), stdout=log, stderr=log, start_new_session=True,
                env={**os.environ, "TMPDIR": str(self.folder / "tmp")},
            )  # fmt: skip

    def wait(self, process: subprocess.Popen[bytes], from_the_start: bool) -> bool:
        """Waits for the moment of the next kill; whether the run is still going on then.

        That is a while after a new record, so that a slow machine gets on as well.

        Args:
            from_the_start: no new record is needed: the kill may hit what a run begins with.
        """
        there = self.bytes_there().count(b"\n")
        while not from_the_start and self.bytes_there().count(b"\n") == there:
            if process.poll() is not None:
                return False
            time.sleep(0.02)
        try:
            process.wait(timeout=self.rng.uniform(0.0, self.longest))
        except subprocess.TimeoutExpired:
            return True
        return False

    def bytes_there(self) -> bytes:
        path = self.run / RECORDS
        return path.read_bytes() if path.exists() else b""

    def note(self, what: str) -> None:
        with (self.folder / KILLS).open("a") as log:
            log.write(json.dumps({"killed": what}) + "\n")

    def kills(self) -> Counter[str]:
        path = self.folder / KILLS
        lines = path.read_text().splitlines() if path.exists() else []
        return Counter(json.loads(line)["killed"] for line in lines)

    def expect_gone(self, processes: list[psutil.Process]) -> None:
        _, alive = psutil.wait_procs(processes, timeout=_GONE_WITHIN)
        if alive:
            self.complaints.append(f"{len(alive)} processes outlive a run")
        for process in alive:
            process.kill()


def kill_children(part: Part) -> None:
    """One run; now and then one of the processes below it is killed."""
    process = part.start()
    while part.wait(process, from_the_start=False):
        children = _below(process.pid)
        if not children:
            continue
        chosen = part.rng.choice(children)
        role = _role(chosen)
        with contextlib.suppress(psutil.NoSuchProcess):  # it ended by itself just now
            chosen.kill()
            part.note(role)
    if process.returncode != 0:
        part.complaints.append(f"the run ended with {process.returncode}")


def kill_parent(part: Part) -> None:
    """A run that is killed and taken up until it ends by itself."""
    while True:
        before = part.bytes_there()
        process = part.start()
        if not part.wait(process, from_the_start=part.rng.random() < _EARLY):
            if process.returncode != 0:
                part.complaints.append(f"the run ended with {process.returncode}")
            _expect_kept(part, before)
            return
        children = _below(process.pid)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        part.note("ekb run")
        part.expect_gone(children)
        _expect_kept(part, before)


def _expect_kept(part: Part, before: bytes) -> None:
    """Whole lines stay as they are; a last one that was cut off is set aside by the next run."""
    whole = before[: before.rfind(b"\n") + 1]
    if not part.bytes_there().startswith(whole):
        part.complaints.append(f"the first {len(whole)} bytes of the records changed")


def _below(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _role(process: psutil.Process) -> str:
    """What a process does, by how many processes stand between it and the run."""
    try:
        return f"child of {Path(process.parent().name()).name}: {process.name()}"  # type: ignore[union-attr]
    except (psutil.NoSuchProcess, AttributeError):
        return "child"


def audit(part: Part) -> dict[str, Any]:
    """What the run's folder holds, and whether that is what was ordered, once each."""
    loaded = read_records(part.run / RECORDS)
    part.complaints.extend(loaded.problems)
    wanted = {f"{w}|llvm|canonical|{e}" for w in part.workloads for e in range(part.epochs)}
    lines = part.bytes_there().splitlines()
    ids = Counter(_ids(lines))
    lost, doubled = wanted - ids.keys(), [i for i, count in ids.items() if count > 1]
    part.complaints.extend(_told(lost, doubled, ids.keys() - wanted))
    part.complaints.extend(_missing_kernels(part))
    return {
        "attempts": len(wanted),
        "records": len(lines),
        "lost": len(lost),
        "doubled": len(doubled),
        "statuses": dict(Counter(record.status.value for record in loaded.records)),
        "kills": dict(part.kills()),
        "folders_left": sum(1 for _ in (part.folder / "tmp").iterdir()),
        "complaints": part.complaints,
    }


def _ids(lines: list[bytes]) -> Iterator[str]:
    """Of every line, read apart from the package; a line that is no JSON was told already."""
    for line in lines:
        with contextlib.suppress(ValueError):
            yield json.loads(line)["id"]


def _told(lost: set[str], doubled: list[str], unknown: set[str]) -> Iterator[str]:
    for what, found in (("lost", lost), ("doubled", doubled), ("not ordered", unknown)):
        if found:
            yield f"{len(found)} {what}: {min(found)}"


def _missing_kernels(part: Part) -> Iterator[str]:
    for record in read_records(part.run / RECORDS).records:
        path = part.run / "kernels" / f"{record.kernel_hash}.ekir"
        if record.kernel is not None and path.read_text() != record.kernel:
            yield f"{record.id}: its kernel is not what the folder holds"


PARTS = {"children": (kill_children, 2.0), "parent": (kill_parent, 8.0)}


def run_part(name: str, folder: Path, epochs: int, longest: float | None = None) -> dict[str, Any]:
    """One of the two runs, to its end, and what its folder holds then."""
    kill, usual = PARTS[name]
    began = time.monotonic()
    longest = usual if longest is None else longest
    part = Part(folder, epochs, longest, random.Random(), WORKLOADS)
    kill(part)
    return audit(part) | {"seconds": round(time.monotonic() - began, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("evaluations", type=int)
    parser.add_argument("--out", type=Path, default=Path("runs/kills"))
    options = parser.parse_args()
    epochs = -(-options.evaluations // 2 // len(WORKLOADS))
    result = {name: run_part(name, options.out / name, epochs) for name in PARTS}
    print(json.dumps(result, indent=2))
    sys.exit(any(part["complaints"] for part in result.values()))


if __name__ == "__main__":
    main()
