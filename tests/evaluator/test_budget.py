"""Over budget by a profile's own limits: the verdict comes before any process with the kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from edgekernelbench.evaluator import EvalSettings, Evaluator
from edgekernelbench.evaluator.task import as_task
from edgekernelbench.suite.find import find_workload
from edgekernelbench.targets.model import Target
from edgekernelbench.targets.profiles.write import profile_text
from edgekernelbench.targets.registry import find_target
from tests.targets.test_probed import PEAKS

TASK = "softmax_last__02"
SETTINGS = EvalSettings(baselines=(), roofline=False)


def limited(name: str, limits: dict[str, Any], folder: Path) -> Target:
    """A profile of a device that is here, with tighter limits."""
    data = yaml.safe_load(profile_text(find_target(name), PEAKS, "small"))
    data["limits"] |= limits
    (folder / "small.yaml").write_text(yaml.safe_dump(data))
    return find_target(str(folder / "small.yaml"))


@pytest.mark.parametrize(
    ("name", "limits", "says"),
    [
        (
            "llvm",
            {"memory": "1 MiB"},
            "memory: 2365440 bytes needed, 1048576 allowed (inputs ",
        ),
        ("llvm", {"code": 64}, "code: "),
        ("pocl", {"memory": "1 MiB", "buffer": "1 MiB"}, "memory: 2365440 bytes needed"),
        ("pocl", {"buffer": 700_000}, "bytes needed, 700000 allowed"),
        ("pocl", {"shared": 16}, "shared"),
    ],
)
def test_before_it_runs(
    name: str, limits: dict[str, Any], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("a process was started for the kernel")

    workload = find_workload(TASK)
    target = limited(name, limits, tmp_path)
    with Evaluator(target, settings=SETTINGS) as evaluator:
        monkeypatch.setattr(evaluator, "kernel_contestant", never)
        result = evaluator.evaluate(workload.canonical(), as_task(workload))
    assert result.status == "over_budget", result.message
    assert says in result.message
    if result.resources is not None:
        over = [item for item in result.resources.budget if item.over]
        assert over and all(item.says() in result.message for item in over)
