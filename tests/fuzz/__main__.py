"""The long form: resumable, everything that breaks is kept.

    python -m tests.fuzz all                             all parts, as many inputs as they need
    python -m tests.fuzz programs --seconds 600          ten minutes of one part
    python -m tests.fuzz show                            what there is so far
    python -m tests.fuzz again layers                    batches anew in which something broke
    python -m tests.fuzz shrink runs/fuzz/programs/programs-17.ekir
    python -m tests.fuzz replay tests/fuzz/found/*.ekir

A part goes on where it stopped, however it was stopped. Each call ends with a table and writes
OUT/result.json. Exit status 1 when something broke, 2 when another process writes to the folder.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from tests.fuzz.engine import run_batches
from tests.fuzz.jobs import JOBS
from tests.fuzz.report import result, table
from tests.fuzz.store import Store, revision

COUNTS = {"parser": 1_000_000, "programs": 20_000, "layers": 12_500, "gpu": 4_000, "races": 600}
OUT = Path("runs/fuzz")
_ENVIRONMENT = {
    "TVM_NUM_THREADS": "2",
    "TVM_BIND_THREADS": "0",  # each process would bind itself to the same two cores
    "OPENBLAS_NUM_THREADS": "1",
}


def main() -> int:
    arguments = _arguments()
    if arguments.what == "shrink":
        from tests.fuzz.shrink import shrink_file

        print(shrink_file(Path(arguments.names[0])))
        return 0
    if arguments.what == "replay":
        return _replay([Path(name) for name in arguments.names])
    stores = {name: Store(arguments.out / name) for name in JOBS}
    try:
        if arguments.what != "show":
            _run(stores, arguments)
    except BlockingIOError:
        print(f"another process writes to {arguments.out}: stop it, or choose another --out")
        return 2
    found = result({name: stores[name].summary() for name in stores}, COUNTS)
    (arguments.out / "result.json").write_text(json.dumps(found, indent=1) + "\n")
    print(table(found))
    return 1 if any(part["failures"] for part in found["parts"].values()) else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", choices=["all", *JOBS, "again", "show", "shrink", "replay"])
    parser.add_argument("names", nargs="*", help="again: the part; shrink, replay: inputs")
    parser.add_argument("--count", type=int, help=f"inputs in all (default {COUNTS})")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after these")
    parser.add_argument("--out", type=Path, default=OUT, help=f"folder (default {OUT})")
    return parser.parse_args()


def _replay(files: list[Path]) -> int:
    """Checks stored inputs anew; 1 if any fails."""
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


def _run(stores: dict[str, Store], arguments: argparse.Namespace) -> None:
    again = arguments.what == "again"
    whats = arguments.names if again else [arguments.what]
    for name in JOBS if whats == ["all"] else whats:
        job, store = JOBS[name], stores[name]
        store.lock()
        job.prepare()
        count = COUNTS[name] if arguments.count is None else arguments.count
        ranges = store.failed() if again else store.missing(count, job.batch)
        made_by = revision()
        for batch in run_batches(job, ranges, arguments.jobs, arguments.seconds):
            store.add(batch, made_by)
            for failure in batch.failures:
                print(f"{failure.job} {failure.seed}: {failure.kind}", file=sys.stderr)


if __name__ == "__main__":
    if any(name not in os.environ for name in _ENVIRONMENT):
        os.environ.update(_ENVIRONMENT)  # read by libraries when they are loaded
        os.execv(sys.executable, [sys.executable, "-m", "tests.fuzz", *sys.argv[1:]])
    sys.exit(main())
