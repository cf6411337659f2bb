"""Do the schedules that ship build for a CPU on which none was searched? Nothing is run.

Each task of which the packs know every function is built as `tvm-tuned` for a 64-bit Arm CPU, in a
process of its own, and has to be labelled as transferred and unscored. Needs a cross linker
(Debian: `gcc-aarch64-linux-gnu`). Prints a JSON object:

    .venv/bin/python benchmarks/transferred.py runs/transferred.jsonl
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

CPU = "cortex-a76"
SECONDS = 300


def main() -> None:
    if len(sys.argv) == 4 and sys.argv[1] == "--task":
        print(json.dumps(_built(sys.argv[2], Path(sys.argv[3]))))
        return
    from edgekernelbench.baselines.packs import pack_files, read_pack

    path = Path(sys.argv[1])
    path.parent.mkdir(parents=True, exist_ok=True)
    known = path.read_text().splitlines() if path.exists() else []
    done = {json.loads(line)["workload"] for line in known}
    tasks = {s.workload for file in pack_files() for s in read_pack(file)} - done
    with path.open("a") as out:
        for workload in sorted(tasks):
            out.write(json.dumps({"workload": workload, **_child(workload)}) + "\n")
            out.flush()
    print(json.dumps(_summary(path), indent=2))


def _summary(path: Path) -> dict[str, object]:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return {
        "cpu": CPU,
        "tasks": len(lines),
        "outcomes": Counter(line["outcome"] for line in lines),
        "failures": {x["workload"]: x["why"] for x in lines if x["outcome"] == "failed"},
    }


def _child(workload: str) -> dict[str, str]:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--task", workload, folder]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            return {"outcome": "failed", "why": f"more than {SECONDS} s"}
    if done.returncode:
        return {"outcome": "failed", "why": (done.stderr.splitlines() or ["no message"])[-1]}
    return json.loads(done.stdout.splitlines()[-1])


def _built(workload: str, folder: Path) -> dict[str, str]:
    from edgekernelbench.baselines.base import Unavailable
    from edgekernelbench.baselines.tvm_tuned import BASELINE
    from edgekernelbench.evaluator.task import materials
    from edgekernelbench.suite.find import find_workload
    from edgekernelbench.targets.model import Target

    target = Target(
        name=CPU, backend="llvm", mcpu=CPU, mtriple="aarch64-linux-gnu", threads=4,
        vector_bits=128, cache_bytes=(65_536, 524_288, 2_097_152), memory_bytes=1 << 30,
    )  # fmt: skip
    recipe = BASELINE.prepare(materials(find_workload(workload)), target, folder)
    if isinstance(recipe, Unavailable):
        return {"outcome": "unavailable", "why": recipe.reason}
    labelled = "transferred from" in recipe.route and recipe.scored is False
    return {"outcome": "built" if labelled else "not labelled", "why": recipe.route}


if __name__ == "__main__":
    main()
