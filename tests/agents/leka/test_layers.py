"""Layers as texts: taking them apart and putting them back changes nothing; patches touch one."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgekernelbench.agents.leka.answers import patches_in
from edgekernelbench.agents.leka.layers import LAYERS, Patch, Refused, layer_text, patched
from edgekernelbench.ir import surface as s
from edgekernelbench.ir.parse import parse
from edgekernelbench.targets.gpus import opencl_target
from edgekernelbench.targets.model import Target
from tests.agents.leka.support import SOFTMAX, TARGET, block

GALLERY = sorted((Path(__file__).parents[3] / "gallery").glob("*.ekir"))


def kernel(text: str) -> s.Kernel:
    parsed = parse(text).kernel
    assert parsed is not None
    return parsed


BASE = kernel(
    "kernel softmax_last[M=1536, C=128](x: f32[M, C]) -> (y: f32[M, C]) {\n"
    f"{SOFTMAX}\n"
    "schedule for gpu { loops y (block m, thread c) }\n"
    "schedule for cpu { loops y (parallel m, vectorize c) }\n}"
)


@pytest.mark.parametrize("target", [TARGET, opencl_target()], ids=["cpu", "gpu"])
@pytest.mark.parametrize("file", GALLERY, ids=lambda file: file.stem)
def test_a_layer_put_back_is_the_kernel_again(file: Path, target: Target) -> None:
    whole = kernel(file.read_text())
    for layer in LAYERS:
        assert patched(whole, Patch(layer, layer_text(whole, layer, target)), target) == whole


def test_a_patch_leaves_the_rest_alone() -> None:
    new = patched(BASE, Patch("schedule", "schedule for cpu { loops y (m, c) }"), TARGET)
    assert isinstance(new, s.Kernel)
    assert new.compute == BASE.compute and new.schedules[0] == BASE.schedules[0]
    assert layer_text(new, "schedule", TARGET) == "schedule for cpu {\n  loops y (m, c)\n}"
    gone = patched(new, Patch("schedule", ""), TARGET)
    assert isinstance(gone, s.Kernel) and [one.target for one in gone.schedules] == ["gpu"]


def test_a_backend_layer_stands_for_that_of_its_class() -> None:
    new = patched(BASE, Patch("schedule", "schedule for llvm { loops y (m, c) }"), TARGET)
    assert isinstance(new, s.Kernel)
    assert [one.target for one in new.schedules] == ["gpu", "llvm"]


def test_a_definition_may_have_the_word_compute() -> None:
    plain = kernel("kernel k[N=4](x: f32[N]) -> (y: f32[N]) { compute { y[i] = x[i] } }")
    text = "# compute\ndef compute_twice(a) = a + a\ncompute { y[i] = compute_twice(x[i]) }"
    made = patched(plain, Patch("compute", text), TARGET)
    assert not isinstance(made, Refused) and len(made.prelude) == 1


def test_definitions_come_with_the_compute_layer() -> None:
    text = "def twice(v) = v + v\ncompute { y[m, c] = twice(x[m, c]) }"
    new = patched(BASE, Patch("compute", text), TARGET)
    assert isinstance(new, s.Kernel) and len(new.prelude) == 1
    assert layer_text(new, "compute", TARGET).startswith("def twice")
    assert new.schedules == BASE.schedules


@pytest.mark.parametrize(
    ("patch", "told"),
    [
        (Patch("schedule", "schedule for cuda { loops y (m, c) }"), "this target takes one block"),
        (Patch("schedule", "schedule for cpu { } memory for cpu { }"), "more than the schedule"),
        (Patch("memory", "schedule for cpu { loops y (c, m) }"), "error"),
        (Patch("compute", f"{SOFTMAX} schedule for cpu {{ }}"), "more than the compute"),
        (Patch("schedule", "schedule for cpu { loops y (m }"), "E120"),
        (Patch("schedule", "schedule for cpu { } } kernel a() -> (b: f32) { compute {"), "error"),
        (Patch("compute", ""), "error"),
    ],
)
def test_what_is_no_patch_is_refused(patch: Patch, told: str) -> None:
    new = patched(BASE, patch, TARGET)
    assert isinstance(new, Refused) and told in new.told


ROWS = "schedule for cpu { loops y (parallel m, vectorize c) }"
WIDE = "schedule for cpu { loops y (parallel m by 4, m, vectorize c) }"
WHOLE = f"def f(v) = v\nkernel a[M=1](x: f32[M]) -> (y: f32[M]) {{\n{SOFTMAX}\n{ROWS}\n}}\n"


@pytest.mark.parametrize(
    ("answer", "wanted", "found"),
    [
        (block(ROWS, "rows") + block(WIDE), "schedule", [(ROWS, "rows"), (WIDE, "")]),
        (block(ROWS) + block(ROWS), "schedule", [(ROWS, "")]),
        (f"I think:\n{ROWS}\nis best", "schedule", [(ROWS, "")]),
        (WHOLE, "schedule", [(ROWS, "")]),
        (WHOLE, "compute", [(f"def f(v) = v\n{SOFTMAX}", "")]),
        (block("memory for cpu { }"), "schedule", [("memory for cpu { }", "")]),
        ("schedule for cpu { loops y (", "schedule", []),
        ("", "compute", []),
        ("no idea, sorry", "memory", []),
        (f"<think>{ROWS}</think>{block(WIDE)}", "schedule", [(WIDE, "")]),
        (block("memory for cpu { }") + block(SOFTMAX), "schedule", []),
    ],
)
def test_patches_of_an_answer(answer: str, wanted, found: list[tuple[str, str]]) -> None:
    assert [(patch.text, patch.reason) for patch in patches_in(answer, wanted)] == found
