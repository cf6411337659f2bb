"""The long form: resumable, several processes, everything that breaks is kept.

    python -m tests.fuzz parser --count 1000000
    python -m tests.fuzz programs --count 20000 --seconds 100
    python -m tests.fuzz show programs
    python -m tests.fuzz shrink runs/fuzz/programs/programs-17.ekir

Counts go on where the last call stopped. Exit status 1 when something broke.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from tests.fuzz.engine import Store, run_batches
from tests.fuzz.jobs import JOBS

COUNTS = {"parser": 1_000_000, "programs": 20_000, "layers": 20_000}
OUT = Path("runs/fuzz")
_ENVIRONMENT = {
    "MALLOC_PERTURB_": "173",  # what is allocated and not written reads as no plausible number
    "TVM_NUM_THREADS": "2",
    "OPENBLAS_NUM_THREADS": "1",
}


def main() -> int:
    arguments = _arguments()
    if arguments.what == "shrink":
        from tests.fuzz.shrink import shrink_file

        print(shrink_file(Path(arguments.file)))
        return 0
    what = arguments.file if arguments.what == "show" else arguments.what
    store = Store(arguments.out / what)
    if arguments.what != "show":
        _run(what, store, arguments)
    summary = store.summary()
    print(json.dumps(summary, indent=1))
    return 1 if summary["failures"] else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("what", choices=[*JOBS, "show", "shrink"])
    parser.add_argument("file", nargs="?", help="with shrink: the input; with show: the job")
    parser.add_argument("--count", type=int, help=f"inputs in all (default {COUNTS})")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after these")
    parser.add_argument("--out", type=Path, default=OUT, help=f"folder (default {OUT})")
    return parser.parse_args()


def _run(what: str, store: Store, arguments: argparse.Namespace) -> None:
    job = JOBS[what]
    count = COUNTS[what] if arguments.count is None else arguments.count
    job.prepare()
    ranges = store.missing(count, job.batch)
    for batch in run_batches(job, ranges, arguments.jobs, arguments.seconds):
        store.add(batch)
        for failure in batch.failures:
            print(f"{failure.job} {failure.seed}: {failure.kind}", file=sys.stderr)


if __name__ == "__main__":
    if any(name not in os.environ for name in _ENVIRONMENT):
        os.environ.update(_ENVIRONMENT)  # read by libraries when they are loaded
        os.execv(sys.executable, [sys.executable, "-m", "tests.fuzz", *sys.argv[1:]])
    sys.exit(main())
