"""One evaluator on the real compiler for all hostile submissions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from edgekernelbench.evaluator.evaluator import Evaluator
from edgekernelbench.evaluator.machinery import machinery
from edgekernelbench.evaluator.settings import EvalSettings
from edgekernelbench.targets.host import host_target

SETTINGS = EvalSettings(
    compile_s=10,
    run_s=1.0,
    total_run_s=20,
    measure_s=0.05,
    interval=0.5,
    replicas=1,
    baselines=(),
)


@pytest.fixture(scope="session")
def evaluator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evaluator]:
    target = host_target().model_copy(update={"memory_bytes": 2 << 30})
    cache = tmp_path_factory.mktemp("cache")
    plugs = machinery(target.threads)
    with Evaluator(target, settings=SETTINGS, cache_dir=cache, machinery=plugs) as made:
        yield made
