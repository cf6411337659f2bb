"""A/A trials: a kernel against itself, compiled twice, order randomised. Prints one JSON object.

.venv/bin/python benchmarks/aa.py --trials 100
"""

from __future__ import annotations

import argparse
import json


def main() -> None:
    from edgekernelbench.evaluator import Evaluator
    from edgekernelbench.evaluator.aa import aa_trial, summarise
    from edgekernelbench.suite import load_suite
    from edgekernelbench.targets.registry import find_target

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--least-us", type=float, default=50.0)
    options = parser.parse_args()
    target = find_target("llvm")
    trials = []
    slow_enough: dict[str, list[float]] = {}
    left = list(load_suite().subset("agent"))
    with Evaluator(target) as evaluator:
        while len(trials) < options.trials:
            for workload in list(left):
                trial = aa_trial(evaluator, workload, workload.canonical())
                if trial.median_us < options.least_us:
                    left.remove(workload)
                    continue
                trials.append(trial)
                slow_enough.setdefault(workload.id, []).append(trial.speedup)
                if len(trials) == options.trials:
                    break
    summary = summarise(trials)
    print(
        json.dumps(
            {
                "cpu": target.description, "threads": target.threads,
                "trials": summary.trials, "within_3_percent": summary.within,
                "interval_holds_1": summary.covering, "worst_error": summary.worst,
                "lower_bound_above_1": sum(t.low > 1.0 for t in trials),
                "lower_bound_above_1.05": sum(t.low > 1.05 for t in trials),
                "kernels": {k: [round(v, 4) for v in s] for k, s in slow_enough.items()},
            },
            indent=2,
        )
    )  # fmt: skip


if __name__ == "__main__":
    main()
