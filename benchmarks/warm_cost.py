"""What one evaluation costs once a task is warm, and where the time goes. Prints one JSON object.

Lower, compile, verify, time candidate and all baselines whose artifacts are cached; kernels under
1 ms only.

    .venv/bin/python benchmarks/warm_cost.py
"""

from __future__ import annotations

import json
import statistics
import time
from collections import defaultdict

REPEATS = 5


def main() -> None:
    from edgekernelbench.evaluator import Evaluator
    from edgekernelbench.suite import load_suite
    from edgekernelbench.targets.registry import find_target

    target = find_target("llvm")
    costs: dict[str, float] = {}
    shares: dict[str, list[float]] = defaultdict(list)
    with Evaluator(target) as evaluator:
        for workload in load_suite().subset("agent"):
            with evaluator.session(workload) as session:
                session.evaluate(workload.canonical())
                seconds = []
                for number in range(REPEATS):
                    begin = time.perf_counter()
                    result = session.evaluate(f"{workload.canonical()}\n# {number}\n")
                    seconds.append(time.perf_counter() - begin)
                    if result.performance is None or result.performance.median_us >= 1000:
                        break
                    for name, value in result.timings.items():
                        shares[name].append(value)
                else:
                    costs[workload.id] = statistics.median(seconds)
    values = sorted(costs.values())
    print(
        json.dumps(
            {
                "cpu": target.description, "threads": target.threads, "kernels": len(costs),
                "median_s": statistics.median(values), "worst_s": values[-1],
                "over_1.5_s": {k: round(v, 3) for k, v in costs.items() if v > 1.5},
                "mean_seconds_by_step": {
                    k: round(statistics.mean(v), 4) for k, v in sorted(shares.items())
                },
            },
            indent=2,
        )
    )  # fmt: skip


if __name__ == "__main__":
    main()
