"""The folder of a long run: which batches are done, by which revision, and what broke.

One line of ``batches.jsonl`` is everything about a batch, so a run that is killed between any two
instructions has a batch or has it not. A later line about the same batch replaces an earlier one.
"""

from __future__ import annotations

import fcntl
import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.fuzz.corpus import ROOT
from tests.fuzz.engine import Batch, Most


def revision() -> str:
    """The checked-out commit, with a ``+`` where tracked files differ from it."""
    commit = _git("rev-parse", "--short=10", "HEAD")
    return commit + ("+" if commit and _git("status", "--porcelain", "-uno") else "")


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


class Store:
    """One job's folder. Only one process at a time may write to it."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.batches = folder / "batches.jsonl"

    def lock(self) -> None:
        """Takes the folder for this process, and drops a line that was cut off while written.

        Raises:
            BlockingIOError: another process has it.
        """
        self._lock = (self.folder / "lock").open("w")
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if self.batches.exists():
            with self.batches.open("r+b") as file:
                file.truncate(file.read().rfind(b"\n") + 1)

    def done(self) -> list[dict]:
        """Finished batches by their place; a half-written last line does not count."""
        found: dict[int, dict] = {}
        text = self.batches.read_text() if self.batches.exists() else ""
        for line in text.splitlines(keepends=True):
            if line.endswith("\n"):
                item = json.loads(line)
                found[item["start"]] = item
        return [found[start] for start in sorted(found)]

    def missing(self, count: int, batch: int) -> Iterator[tuple[int, int]]:
        """Ranges of ``0 .. count`` that no finished batch covers."""
        at = 0
        spans = [(item["start"], item["end"]) for item in self.done()]
        for start, end in [*spans, (count, count)]:
            for low in range(at, min(start, count), batch):
                yield low, min(low + batch, start, count)
            at = max(at, end)

    def failed(self) -> list[tuple[int, int]]:
        """Ranges of the batches in which something broke."""
        return [(item["start"], item["end"]) for item in self.done() if item["failures"]]

    def add(self, batch: Batch, made_by: str) -> None:
        """Keeps a finished batch; the inputs that broke something as a file each."""
        broken = {failure.seed: failure for failure in batch.failures}
        before = [item for item in self.done() if item["start"] == batch.start]
        for old in (failure for item in before for failure in item["failures"]):
            if old["seed"] not in broken:
                self.input_file(old["seed"]).unlink(missing_ok=True)
        for failure in batch.failures:
            self.input_file(failure.seed).write_text(failure.text, errors="surrogatepass")
        line = {
            "start": batch.start,
            "end": batch.end,
            "revision": made_by,
            "cpu_s": round(batch.cpu_s, 3),
            "counts": dict(batch.counts),
            "most": batch.most.values,
            "failures": [
                {"seed": f.seed, "kind": f.kind, "detail": f.detail} for f in batch.failures
            ],
        }
        with self.batches.open("a") as file:
            file.write(json.dumps(line) + "\n")

    def input_file(self, seed: int) -> Path:
        """Where the input of this seed is kept if it broke something."""
        return self.folder / f"{self.folder.name}-{seed}.ekir"

    def summary(self) -> dict:
        """Totals over all finished batches."""
        counts: Counter[str] = Counter()
        revisions: Counter[str] = Counter()
        most, inputs, cpu_s = Most(), 0, 0.0
        failures: dict[str, list[int]] = {}
        seeds: list[list[int]] = []
        for item in self.done():
            counts.update(item["counts"])
            size = item["end"] - item["start"]
            revisions[item["revision"]] += size
            inputs, cpu_s = inputs + size, cpu_s + item["cpu_s"]
            if seeds and seeds[-1][1] == item["start"]:
                seeds[-1][1] = item["end"]
            else:
                seeds.append([item["start"], item["end"]])
            most.merge({name: tuple(pair) for name, pair in item["most"].items()})
            for failure in item["failures"]:
                failures.setdefault(failure["kind"], []).append(failure["seed"])
        return {
            "inputs": inputs,
            "seeds": seeds,
            "cpu_s": round(cpu_s, 1),
            "inputs_per_cpu_s": round(inputs / cpu_s, 2) if cpu_s else None,
            "most": {
                name: {"value": round(value, 3), "seed": seed}
                for name, (value, seed) in sorted(most.values.items())
            },
            "counts": dict(counts.most_common()),
            "failures": dict(sorted(failures.items(), key=lambda item: -len(item[1]))),
            "revisions": dict(revisions),
        }
