"""Dot products in machine code: the instruction of each CPU, and exact results on this one."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from edgekernelbench.compilers.tvm import TvmCompiler
from edgekernelbench.compilers.tvm.build import generate, tvm_target
from edgekernelbench.compilers.tvm.build import lower as lower_tir
from edgekernelbench.compilers.tvm.dots import required_features
from edgekernelbench.compilers.tvm.emit import emit_module
from edgekernelbench.compilers.tvm.execute import LoadedKernel, aligned_copy, aligned_empty
from edgekernelbench.targets.host import host_target
from edgekernelbench.targets.model import Target
from tests.lowering.support import TARGET, load_text, must_lower
from tests.lowering.test_dots import product

X86 = ("sse2", "avx2")
CPUS = {
    "icelake-server": (None, 512, (*X86, "avx512bw", "avx512vl", "avx512vnni")),
    "alderlake": (None, 256, (*X86, "avxvnni")),
    "sierraforest": (None, 256, (*X86, "avxvnni", "avxvnniint8")),
    "znver3": (None, 256, X86),
    "x86-64": (None, 128, ("sse2",)),
    "cortex-a76": ("aarch64-linux-gnu", 128, ("dotprod",)),
    "neoverse-v1": ("aarch64-linux-gnu", 128, ("dotprod", "i8mm")),
    "cortex-a72": ("aarch64-linux-gnu", 128, ()),
}
FOUND = [
    ("icelake-server", "s8", "s8", "vpdpbusd"),
    ("icelake-server", "u8", "u8", "vpdpbusd"),
    ("alderlake", "s8", "s8", "vpdpbusd"),
    ("sierraforest", "s8", "s8", "vpdpbssd"),
    ("sierraforest", "u8", "u8", "vpdpbuud"),
    ("znver3", "s8", "s8", "vpmaddwd"),
    ("x86-64", "u8", "s8", "pmaddwd"),
    ("cortex-a76", "s8", "s8", "sdot"),
    ("cortex-a76", "u8", "s8", "sdot"),
    ("neoverse-v1", "u8", "s8", "usdot"),
    ("cortex-a72", "s8", "s8", "mla"),
]


def profile(cpu: str) -> Target:
    triple, bits, features = CPUS[cpu]
    update = {"mcpu": cpu, "mtriple": triple, "vector_bits": bits, "features": features}
    return TARGET.model_copy(update=update)


@pytest.mark.parametrize(("cpu", "a", "b", "mnemonic"), FOUND)
def test_the_assembly_has_the_instruction(cpu: str, a: str, b: str, mnemonic: str) -> None:
    kernel, program = load_text(product(4, 45, 30, a, b))
    module = must_lower(kernel, program, profile(cpu)).module
    assert module is not None
    target = tvm_target(profile(cpu), required_features((module.main,)))
    text = generate(lower_tir(emit_module(module), target), target).inspect_source("s")
    words = set(text.split())
    assert mnemonic in words
    saturating = {"pmaddubsw", "vpmaddubsw", "vpdpbusds"}
    assert saturating.isdisjoint(words)


def _native() -> list[tuple[str, ...]]:
    """What this host has, one instruction set after another, down to none."""
    have = host_target().features
    return [have[:n] for n in range(len(have), -1, -1)]


@pytest.mark.parametrize("features", _native(), ids=lambda f: "+".join(f) or "base")
@pytest.mark.parametrize(("a", "b"), list(itertools.product(("s8", "u8"), repeat=2)))
def test_results_on_this_host_are_exact(
    features: tuple[str, ...], a: str, b: str, tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    target = host_target().model_copy(update={"features": features})
    for number, shape in enumerate([(4, 32, 16), (5, 45, 30), (3, 7, 9)]):
        kernel, program = load_text(product(*shape, a, b))
        folder = tmp_path / str(number)
        folder.mkdir()
        built = TvmCompiler().compile(kernel, program, target, folder)
        assert built.artifact is not None, built.diagnostics
        arrays = {}
        for tensor in program.inputs:
            low, high = tensor.dtype.int_range
            drawn = rng.integers(low, high, tensor.shape, endpoint=True)
            drawn = np.where(rng.random(tensor.shape) < 0.7, low if low else high, drawn)
            arrays[tensor.name] = aligned_copy(drawn.astype(tensor.dtype.numpy))
        out = aligned_empty((shape[0], shape[1]), np.dtype(np.int32))
        call = LoadedKernel(folder).bind({"A": arrays["A"]}, {"B": arrays["B"]}, {"C": out})
        call()
        want = arrays["A"].astype(np.int64) @ arrays["B"].astype(np.int64)
        np.testing.assert_array_equal(out, want)


def test_the_code_is_built_for_what_its_instructions_take() -> None:
    """The name of a CPU may say less than its profile: the instruction is there all the same."""
    kernel, program = load_text(product(4, 32, 16, "u8", "s8"))
    target = profile("alderlake").model_copy(update={"mcpu": "haswell"})
    module = must_lower(kernel, program, target).module
    assert module is not None
    assert required_features((module.main,)) == ("avxvnni",)
    built = tvm_target(target, required_features((module.main,)))
    text = generate(lower_tir(emit_module(module), built), built).inspect_source("s")
    assert "vpdpbusd" in text
