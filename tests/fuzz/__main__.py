"""The long form: resumable, several processes, everything that breaks is kept.

    python -m tests.fuzz parser --count 1000000
    python -m tests.fuzz programs --count 20000 --seconds 100
    python -m tests.fuzz show programs
    python -m tests.fuzz shrink runs/fuzz/programs/programs-17.ekir
    python -m tests.fuzz replay tests/fuzz/found/*.ekir

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

COUNTS = {"parser": 1_000_000, "programs": 20_000, "layers": 12_500}
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

        print(shrink_file(Path(arguments.files[0])))
        return 0
    if arguments.what == "replay":
        return _replay([Path(name) for name in arguments.files])
    what = arguments.files[0] if arguments.what == "show" else arguments.what
    store = Store(arguments.out / what)
    if arguments.what != "show":
        _run(what, store, arguments)
    summary = store.summary()
    print(json.dumps(summary, indent=1))
    return 1 if summary["failures"] else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("what", choices=[*JOBS, "show", "shrink", "replay"])
    parser.add_argument("files", nargs="*", help="shrink, replay: inputs; show: the job")
    parser.add_argument("--count", type=int, help=f"inputs in all (default {COUNTS})")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after these")
    parser.add_argument("--out", type=Path, default=OUT, help=f"folder (default {OUT})")
    return parser.parse_args()


def _replay(files: list[Path]) -> int:
    """Checks stored inputs anew; the number of them that fail, 1 at most."""
    from tests.fuzz.jobs import job_of
    from tests.fuzz.shrink import failure_kind

    failed = 0
    for file in files:
        job, seed = job_of(file)
        job.prepare()
        kind = failure_kind(job, file.read_text(errors="surrogatepass"), seed)
        failed |= kind is not None
        print(f"{file.name}: {kind or 'right'}")
    return failed


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
