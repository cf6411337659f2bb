"""Random nests of blocks and threads: legal ones give the results of the program, without races."""

from __future__ import annotations

import random

import pytest

from edgekernelbench.ir.interpret import interpret
from edgekernelbench.lowering.gpu import device as gpu_device
from edgekernelbench.lowering.lower import lower
from edgekernelbench.targets.gpus import opencl_target

from .run_grind import without_barrier
from .run_kernels import run_kernels
from .run_nest import NestError
from .support import compare, draw_inputs, load_text, must_lower

PRODUCT = """kernel k[M=%d, K=%d, N=%d](X: f32[M, K], W: f32[K, N]) -> (Y: f32[M, N]) {
  compute { acc[i: M, j: N] = sum[k: K](X[i, k] * W[k, j])  Y[i, j] = relu(acc[i, j]) + 1 }
  %s
}"""
ROWS = """kernel k[R=%d, C=%d, D=%d](X: f32[R, C]) -> (Y: f32[R, C], Z: f32[D]) {
  compute {
    m[r: R] = max[c: C](X[r, c])
    e[r: R, c: C] = exp(X[r, c] - m[r])
    s[r: R] = sum[c: C](e[r, c])
    Y[r, c] = e[r, c] / s[r]
    Z[d] = sum[r: R, c: C](pad(X[r, c + d], 1))
  }
  %s
}"""
STENCIL = """kernel k[H=%d, V=%d, F=%d](X: f32[H, V]) -> (Y: f32[H, V], at: s32[H]) {
  compute {
    a[h: H, v: V] = X[h, v] * 2 + F
    b[h: H, v: V] = sum[r: 3, s: 2](pad(a[h + r - 1, v - s], 0.5))
    Y[h, v] = b[h, v] + a[h, v]
    at[h] = argmax[v: V](b[h, v])
  }
  %s
}"""
PROGRAMS = {
    "product": (PRODUCT, "ikj", {"acc": "ij|k", "Y": "ij|"}, {"acc": "XW"}),
    "rows": (
        ROWS, "rcd", {"m": "r|c", "e": "rc|", "s": "r|c", "Y": "rc|", "Z": "d|rc"}, {"Z": "X"},
    ),
    "stencil": (
        STENCIL, "hvf", {"a": "hv|", "b": "hv|rs", "Y": "hv|", "at": "h|v"}, {"b": "a"},
    ),
}  # fmt: skip
"""Text, axes that have its three sizes, axes of stages (``own|reduced``), what they may cache."""
ROOTS = {"product": ["acc", "acc", "Y"], "rows": ["Y", "Z"], "stencil": ["Y", "b", "at"]}


def nest_of(
    axes: str, extents: dict[str, int], rng: random.Random, placed: bool
) -> tuple[list[str], list[str]]:
    """Pieces as written, and the names of their loops."""
    own, inner = axes.split("|")
    pieces: list[tuple[str, int | None, str]] = []
    for axis in own + inner:
        most = min(5, extents[axis])
        steps = sorted(rng.randint(1, most) for _ in range(rng.choice([0, 0, 1, 1, 2])))
        for step in [*reversed(steps), None]:
            pieces.append((axis, step, ""))
    order = list(range(len(pieces)))
    rng.shuffle(order)
    queues = {a: [p for p in pieces if p[0] == a] for a in own + inner}
    mixed = [queues[pieces[k][0]].pop(0) for k in order]
    if rng.random() < 0.6:  # spatial loops outside, as an author would have it
        mixed.sort(key=lambda piece: piece[0] in inner and piece[1] is None)
    blocks = 0 if placed else rng.choice([0, 1, 1, 2])
    out: list[str] = []
    counts = {a: sum(p[0] == a for p in pieces) for a in own + inner}
    seen: dict[str, int] = {}
    names: list[str] = []
    for k, (axis, step, _) in enumerate(mixed):
        kind = (
            "block " if k < blocks and axis in own else rng.choice(["thread ", "", "", "unroll "])
        )
        out.append(f"{kind}{axis}" + ("" if step is None else f" by {step}"))
        rank = seen.get(axis, 0)
        seen[axis] = rank + 1
        names.append(axis if counts[axis] == 1 else f"{axis}{rank}")
    return out, names


def layers(program: str, extents: dict[str, int], rng: random.Random) -> str:
    """A schedule and a memory layer."""
    _, _, stages, caches = PROGRAMS[program]
    names = list(stages)
    root = rng.choice(ROOTS[program])
    placed = {n for n in names if n != root and rng.random() < 0.5}
    lines, loops = [], {}
    for name in names:
        if name == root or rng.random() < 0.6:
            pieces, loops[name] = nest_of(stages[name], extents, rng, name in placed)
            lines.append(f"loops {name} ({', '.join(pieces)})")
    common = rng.choice(loops[root][:2])
    lines += [f"place {n} in {root}.{common}" for n in placed]
    memory = []
    for stage, tensors in caches.items():
        if stage in loops and rng.random() < 0.7:
            loop, tensor = rng.choice(loops[stage]), rng.choice(tensors)
            memory.append(f"cache {tensor} in {stage}.{loop}")
            if rng.random() < 0.4:
                memory.append(f"prefetch {tensor} in {stage}.{loop} ahead 1")
    rng.shuffle(lines)
    return f"schedule for gpu {{ {' '.join(lines)} }} memory for gpu {{ {' '.join(memory)} }}"


def outcome(program: str, seed: int) -> str:
    """``right``, or the code of the first refusal."""
    text, axes, _, _ = PROGRAMS[program]
    rng = random.Random(f"{program} {seed}")
    sizes = tuple(rng.choice([1, 2, 3, 4, 5, 6, 7, 9, 12]) for _ in range(3))
    extents = {"r": 3, "s": 2, **dict(zip(axes, sizes, strict=True))}
    full = text % (*sizes, layers(program, extents, rng))
    kernel, checked = load_text(full)
    result = lower(kernel, checked, opencl_target())
    if result.module is None:
        return result.diagnostics[0].rule.code
    inputs = draw_inputs(checked)
    try:
        got = run_kernels(result.module, inputs, {t.name for t in checked.outputs})
    except AssertionError as error:
        raise AssertionError(f"{error}\n{full}") from error
    want = interpret(checked, inputs, "declared")
    for tensor in checked.outputs:
        compare(got[tensor.name], want[tensor.name], f"{tensor.name}\n{full}")
    return "right"


@pytest.mark.parametrize("program", PROGRAMS)
def test_random_nests(program: str) -> None:
    outcomes = [outcome(program, seed) for seed in range(100)]
    assert outcomes.count("right") >= 5, outcomes


def test_a_barrier_left_out_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    schedule = """schedule for gpu {
        loops acc (block i by 4, block j by 4, k by 2, thread i, thread j, k) place Y in acc.j0
      }
      memory for gpu { cache X, W in acc.k0 %s }"""
    for ahead, barriers in (("", 2), ("prefetch X, W in acc.k0 ahead 1", 1)):
        text = PRODUCT % (4, 8, 4, schedule % ahead)
        kernel, program = load_text(text)
        inputs, outputs = draw_inputs(program), {t.name for t in program.outputs}
        for number in range(barriers):
            with monkeypatch.context() as patch:
                patch.setattr(gpu_device, "place_barriers", without_barrier(number))
                module = must_lower(kernel, program, opencl_target()).module
            assert module is not None
            with pytest.raises(NestError, match=r"race|uninitialised"):
                run_kernels(module, inputs, outputs)
        whole = must_lower(kernel, program, opencl_target()).module
        assert whole is not None
        run_kernels(whole, inputs, outputs)
