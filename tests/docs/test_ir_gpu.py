"""The page about layers for GPUs: its kernels run, and what it says is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from edgekernelbench.agents.prompts import gpu_guide
from edgekernelbench.lowering.lower import lower
from edgekernelbench.targets.gpus import cuda_target, opencl_target
from tests.lowering.support import load_text, must_lower
from tests.lowering.test_device import pocl, shapes
from tests.lowering.test_gpu_layers import of_kind, right

__all__ = ["pocl"]
TEXT = (Path(__file__).parents[2] / "docs" / "ir-gpu.md").read_text(encoding="utf-8")
KERNELS = re.findall(r"^```ekir\n(.*?)^```$", TEXT, flags=re.S | re.M)
NAMES = re.findall(r"^kernel (\w+)", "".join(KERNELS), flags=re.M)


def test_the_page_is_short_and_models_see_it_without_recipes() -> None:
    assert len(TEXT.encode()) <= 4096
    assert "block i by 64" in gpu_guide() and "kernel " not in gpu_guide()


@pytest.mark.parametrize("text", KERNELS, ids=NAMES)
def test_kernels(text: str, pocl) -> None:
    right(text, pocl)
    kernel, program = load_text(text)
    assert not must_lower(kernel, program, cuda_target("sm_87")).diagnostics


MATMUL = KERNELS[0]
MEMORY = re.compile(r"  memory for gpu \{.*?\n  \}\n", flags=re.S)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (("prefetch X, W in acc.k0 ahead 1", "prefetch X in acc.k0 ahead 2"), "E455"),
        (("cache X, W in acc.k0", "cache W in acc.k0"), "E455"),
        (("thread i by 8, thread j by 4", "thread i by 2, thread j by 2"), "E630"),
        (("k by 16", "k by 96"), "E631"),
        (("block i by 64, block j", "block i by 64, k by 48, block j"), "E452"),
    ],
)
def test_limits(change: tuple[str, str], code: str) -> None:
    text = MATMUL.replace(*change)
    assert text != MATMUL
    if code == "E455":
        text = text.replace("    layout X.cache [i, k] -> [k, i]\n", "")
    if code == "E452":
        text = MEMORY.sub("", text)
    kernel, program = load_text(text)
    result = lower(kernel, program, opencl_target())
    assert result.module is None
    assert code in [d.rule.code for d in result.diagnostics]


def test_one_block_is_what_the_thread_loops_say() -> None:
    kernel, program = load_text(MATMUL)
    module = must_lower(kernel, program, opencl_target()).module
    assert module is not None
    assert shapes(module.main) == [(2 * 3, 8 * 16)]
    from edgekernelbench.lowering import nest

    barriers = of_kind(module, nest.Barrier)
    assert len(barriers) == 1
