"""Reductions by combiners, compiled."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgekernelbench.lowering.lower import lower
from edgekernelbench.targets.host import host_target
from tests.compilers.nests import run
from tests.ir.combiner_cases import CASES, agree, inputs
from tests.lowering.support import load_text
from tests.lowering.test_combiners import LAYERS, layered

PAIRS = [(name, "") for name in CASES] + [(name, lines[0]) for name, lines in LAYERS.items()]
PAIRS += [("softmax", LAYERS["softmax"][5]), ("softmax", LAYERS["softmax"][7])]


@pytest.mark.parametrize(("name", "lines"), PAIRS)
def test_compiled_like_numpy(tmp_path: Path, name: str, lines: str) -> None:
    kernel, program = load_text(layered(name, lines))
    module = lower(kernel, program, host_target()).module
    assert module is not None
    data = inputs(program.inputs, 6)
    agree(run(tmp_path, module, data), CASES[name][1](data))
