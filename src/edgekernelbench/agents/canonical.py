"""The control without any idea: hands in the canonical program under the default rules.

It should be worth about 1.0 against ``tvm``; what it is away from 1.0 is noise or a fault of
ours, which is why it exists.
"""

from __future__ import annotations

from typing import Any

from edgekernelbench.agents.base import Answer, Device, Task


class CanonicalAgent:
    name = "canonical"
    needs_canonical = True

    @property
    def options(self) -> dict[str, Any]:
        return {}

    def attempt(self, task: Task, device: Device, seed: int) -> Answer:
        return Answer(task.workload.canonical(), "the canonical program, default rules")
