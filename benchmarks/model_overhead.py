"""How many attempts a minute a run with a language model reaches when the model costs no time, and
how much of that time is the evaluator's. Prints one JSON object.

The model answers each task's first prompt with its canonical program, within this process: what is
left is Inspect, prompts, extraction, records, and one evaluation an attempt on fresh inputs. The
clock starts when the baselines are built.

    .venv/bin/python benchmarks/model_overhead.py [--epochs 4]
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from inspect_ai.model import ChatMessage, GenerateConfig, ModelAPI, ModelOutput, modelapi
from inspect_ai.tool import ToolChoice, ToolInfo

from edgekernelbench.llm.run import Asking, run_with_model
from edgekernelbench.records.schema import Record, Spent
from edgekernelbench.runs.order import Order
from edgekernelbench.runs.run import Silent
from edgekernelbench.suite import load_suite
from edgekernelbench.targets.registry import find_target


@modelapi(name="instant")
class Instant(ModelAPI):
    """Answers at once."""

    async def generate(
        self,
        input: list[ChatMessage],
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput:
        name = input[-1].text.partition("# Task ")[2].split()[0]
        kernel = load_suite().workloads[name].canonical()
        return ModelOutput.from_content(self.model_name, f"```ekir\n{kernel}\n```")

    def max_connections(self) -> int:
        return 64


class Clock(Silent):
    """Notes when the first attempt begins."""

    began: float | None = None

    def attempt_begins(self, *_: Any) -> None:
        self.began = self.began or time.perf_counter()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--subset", default="quick")
    parser.add_argument("--out", type=Path, help="keep the run there, for `ekb score`")
    given = parser.parse_args()
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        order = Order(
            agent="direct",
            target="llvm",
            workloads=tuple(load_suite().subset(given.subset)),
            subset=given.subset,
            limits=Spent(),
            epochs=given.epochs,
            seed=0,
            folder=given.out or Path(folder) / "run",
            resume=False,
        )
        records = run_with_model(order, Asking("instant/canonical"), clock)
    ended = time.perf_counter()
    assert clock.began is not None, "a run has attempts"
    print(json.dumps(summary(records, ended - clock.began), indent=2))


def summary(records: list[Record], seconds: float) -> dict[str, Any]:
    """What is printed.

    Args:
        seconds: of wall time, from the first attempt on.
    """
    target = find_target("llvm")
    judged = [record.evaluation for record in records if record.evaluation is not None]
    evaluating = sum(evaluation.timings["total"] for evaluation in judged)
    steps = sorted({name for evaluation in judged for name in evaluation.timings})
    return {
        "cpu": target.description,
        "threads": target.threads,
        "attempts": len(records),
        "statuses": Counter(record.status.value for record in records),
        "seconds": round(seconds, 1),
        "attempts_a_minute": round(60 * len(records) / seconds, 1),
        "evaluator_share": round(evaluating / seconds, 3),
        "mean_seconds_by_step": {
            name: round(sum(e.timings.get(name, 0.0) for e in judged) / len(judged), 4)
            for name in steps
        },
    }


if __name__ == "__main__":
    main()
