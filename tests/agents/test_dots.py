"""The tuner's nests for sums of products of bytes."""

from __future__ import annotations

import pytest

from edgekernelbench.agents.tuner.choices import Machine, reduction_choices
from edgekernelbench.agents.tuner.views import view_program
from edgekernelbench.ir import surface as s
from edgekernelbench.ir.edit import with_layers
from edgekernelbench.lowering import nest
from edgekernelbench.lowering.lower import lower
from edgekernelbench.lowering.normalize import normalize
from tests.lowering.support import load_text
from tests.lowering.test_dots import CPUS, cpu

CASES = {
    "rows by columns": "C[i, j] = sum[k: 32](A[i, k] * B[k, j])",
    "transposed": "C[i, j] = sum[k: 48](B[k, i] * A[j, k])",
    "two axes": "C[i, j] = sum[r: 2, c: 16](A[i, r * 16 + c] * B[r * 16 + c, j])",
}


@pytest.mark.parametrize("name", CPUS)
@pytest.mark.parametrize("case", CASES)
def test_nests_with_dot_products_come_first_and_are_legal(case: str, name: str) -> None:
    header = "kernel k(A: s8[48, 48], B: const s8[48, 48]) -> (C: s32[48, 48])"
    kernel, program = load_text(f"{header} {{ compute {{ {CASES[case]} }} }}")
    (view,) = view_program(normalize(program))
    choices = reduction_choices(view, Machine.of(cpu(name)), False)
    assert choices[0].label.startswith("dot")
    for choice in choices:
        if not choice.label.startswith("dot"):
            continue
        layers = (s.ScheduleLayer("cpu", choice.lines),), (s.MemoryLayer("cpu", choice.layouts),)
        result = lower(with_layers(kernel, *layers), program, cpu(name))
        assert result.module is not None, (choice, result.diagnostics)
        found = nest.statements(result.module.main.body)
        assert any(isinstance(statement, nest.Dot) for statement in found)


def test_other_sums_get_none() -> None:
    header = "kernel k(A: s8[48, 48], B: const f32[48, 48]) -> (C: f32[48, 48])"
    _, program = load_text(f"{header} {{ compute {{ C[i, j] = sum[k: 48](A[i, k] * B[k, j]) }} }}")
    (view,) = view_program(normalize(program))
    choices = reduction_choices(view, Machine.of(cpu("AVX2")), False)
    assert not any(choice.label.startswith("dot") for choice in choices)
