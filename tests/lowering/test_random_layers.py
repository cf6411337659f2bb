"""Random schedule and memory layers: each is refused with errors, or gives the same results."""

from __future__ import annotations

import random

import pytest

from edgekernelbench.ir.edit import with_layers
from edgekernelbench.ir.parse import parse
from edgekernelbench.ir.printer import print_kernel
from edgekernelbench.lowering.emit import buffers
from edgekernelbench.lowering.lower import lower

from .programs import PROGRAMS
from .random_layers import random_layers
from .support import TARGET, check, load_text

SEEDS = range(40)
VNNI = TARGET.model_copy(update={"features": ("avx512vnni", "avx512vl")})
NEON = TARGET.model_copy(update={"features": ("dotprod",), "vector_bits": 128})


@pytest.mark.parametrize("name", PROGRAMS)
def test_random_layers_keep_the_results(name, monkeypatch):
    kernel, program = load_text(PROGRAMS[name])
    accepted = 0
    for seed in SEEDS:
        monkeypatch.setattr(buffers, "MIN_SHARED_BYTES", 0 if seed % 2 else 4096)
        rng = random.Random(f"{name} {seed}")
        schedule, memory = random_layers(program, rng)
        layered = with_layers(kernel, (schedule,), (memory,))
        target = (TARGET, VNNI, NEON)[seed % 3]
        result = lower(layered, program, target)
        if result.module is None:
            assert result.diagnostics, print_kernel(layered)
            assert all(d.rule.code[:2] in ("E4", "E5") for d in result.diagnostics)
            continue
        try:
            check(layered, program, target, seed)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{print_kernel(layered)}") from error
        accepted += 1
    assert accepted >= 6


@pytest.mark.parametrize("name", PROGRAMS)
def test_default_rules_keep_the_results(name):
    kernel, program = load_text(PROGRAMS[name])
    check(kernel, program)


@pytest.mark.parametrize("name", ["matmul", "conv_pool", "attention", "lstm"])
def test_the_order_of_lines_does_not_matter(name):
    kernel, program = load_text(PROGRAMS[name])
    found = 0
    for seed in range(60):
        schedule, memory = random_layers(program, random.Random(f"{name} order {seed}"))
        nest = lower(with_layers(kernel, (schedule,), (memory,)), program, TARGET).module
        if nest is None or len(schedule.lines) < 2:
            continue
        found += 1
        for shuffle in range(3):
            lines, layouts = list(schedule.lines), list(memory.lines)
            random.Random(shuffle).shuffle(lines)
            random.Random(shuffle).shuffle(layouts)
            again = with_layers(
                kernel,
                (type(schedule)("cpu", tuple(lines)),),
                (type(memory)("cpu", tuple(layouts)),),
            )
            other = lower(again, program, TARGET).module
            assert other is not None
            assert other.nest == nest.nest, print_kernel(again)
        if found == 4:
            return
    assert found


def test_random_layers_are_texts_of_the_language():
    kernel, program = load_text(PROGRAMS["conv"])
    schedule, memory = random_layers(program, random.Random(1))
    layered = with_layers(kernel, (schedule,), (memory,))
    assert parse(print_kernel(layered)).kernel == layered
