"""Workspace: histories keep what is still read, buffers share memory, bills add up."""

from __future__ import annotations

import pytest

from edgekernelbench.lowering.lower import lower

from .support import TARGET, check, load_text, must_lower

BIG = TARGET.model_copy(update={"threads": 4})


def workspace(text: str, sizes=None, target=TARGET) -> int:
    kernel, program = load_text(text, sizes)
    module = must_lower(kernel, program, target).module
    assert module is not None
    return module.workspace_bytes


LSTM = """kernel k[L=%d, H=512](x: f32[L, 4*H], w: const f32[H, 4*H]) -> (h: f32[L, H]) {
  compute { seq t: L {
    z[g: 4*H] = x[t, g] + sum[k: H](w[k, g] * pad(h[t-1, k], 0))
    c[t, j: H] = sigmoid(z[j]) * pad(c[t-1, j], 0) + tanh(z[H + j])
    h[t, j: H] = sigmoid(z[2*H + j]) * tanh(c[t, j])
  } }
}"""


def test_a_history_that_is_read_one_step_back_takes_two_slabs():
    assert workspace(LSTM % 8) == workspace(LSTM % 800)


def ring(reads: str, after: str = "0", header: str = "seq t: L") -> str:
    return f"""kernel k[L=12, N=5](x: f32[L, N]) -> (y: f32[L, N], z: f32[N]) {{
      compute {{
        {header} {{
          s[t, n: N] = x[t, n] + 0.5 * ({reads})
          y[t, n: N] = s[t, n]
        }}
        z[n] = {after}
      }}
    }}"""


@pytest.mark.parametrize(
    ("text", "slabs"),
    [
        (ring("pad(s[t-1, n], 0)"), 2),
        (ring("pad(s[t-1, n], 0) - pad(s[t-3, n], 0)"), 4),
        (ring("pad(s[t-1, N - 1 - n], 0)", "s[L-1, n]"), 2),
        (ring("pad(s[t-1, n], 0)", "s[L-2, n]"), 2),
        (ring("pad(s[t-1, n], 0)", "s[L-4, n]"), 4),
        (ring("pad(s[t-1, n], 0)", "s[0, n]"), 12),
        (ring("pad(s[t+2, n], 0)", "s[0, n]", "seq t: L reversed"), 3),
        (ring("pad(s[t+2, n], 0)", "s[L-1, n]", "seq t: L reversed"), 12),
        (ring("1", header="each t: L"), 1),
        (ring("sum[k: 0..t](s[k, n])"), 12),
    ],
)
def test_slabs(text, slabs):
    kernel, program = load_text(text)
    module = check(kernel, program).module
    assert module is not None
    found = [line for line in module.nest.splitlines() if " s: f32[" in line]
    shape = f"[{slabs}, 5]"
    if slabs == 1:
        assert not found or shape in found[0]
    else:
        assert len(found) == 1 and shape in found[0]


def test_nested_histories_contract_only_the_outer_loop():
    text = """kernel k[H=9, W=7](x: f32[H, W]) -> (y: f32[H, W]) {
      compute { seq i: H { seq j: W {
        d[i, j] = min(x[i, j], pad(d[i-1, j+1], 9) + 1, pad(d[i, j-1], 9) + 1)
        y[i, j] = d[i, j]
      } } }
    }"""
    kernel, program = load_text(text)
    module = check(kernel, program).module
    assert module is not None
    assert "d: f32[2, 7]" in module.nest


CHAIN = """kernel k[N=4096](x: f32[N]) -> (y: f32[N]) {
  compute {
    a[i: N] = exp(x[i])
    b[i: N] = exp(a[i])
    c[i: N] = exp(b[i])
    d[i: N] = exp(c[i])
    e[i: N] = exp(d[i])
    y[i] = exp(e[i])
  }
}"""


def test_a_chain_needs_two_buffers():
    assert workspace(CHAIN) == 2 * 4 * 4096
    kernel, program = load_text(CHAIN, {"N": 2048})
    check(kernel, program)


def test_buffers_of_a_loop_body_are_shared_and_live_through_the_loop_when_carried():
    text = """kernel k[L=3, N=2048](x: f32[N]) -> (y: f32[N]) {
      compute {
        p[i: N] = exp(x[i])
        seq l: L {
          u[i: N] = exp(pad(z[l-1, i], x[i]))
          v[i: N] = exp(-u[i])
          w[i: N] = exp(-v[i])
          z[l, i: N] = w[i] * 0.5 + p[i]
        }
        y[i] = z[L-1, i]
      }
    }"""
    # p lives through the loop, z has two slabs, u, v and w share two buffers.
    assert workspace(text) == 4 * 2048 * (1 + 2 + 2)
    kernel, program = load_text(text, {"N": 1024})
    check(kernel, program)


def test_each_thread_has_its_own_buffers():
    text = """kernel k[B=16, L=64, N=512](x: f32[B, L, N]) -> (y: f32[B, L]) {
      compute { each b: B { seq t: L {
        u[n: N] = exp(x[b, t, n])
        y[b, t] = sum[n: N](u[n])
      } } }
    }"""
    one = TARGET.model_copy(update={"threads": 1})
    assert workspace(text, target=one) == 4 * 512
    assert workspace(text, target=BIG) == 4 * 4 * 512
    kernel, program = load_text(text, {"B": 16, "L": 20, "N": 40})
    check(kernel, program, BIG)


def test_a_parallel_loop_does_not_share_what_it_writes():
    text = """kernel k[B=64, L=300](x: f32[B, L]) -> (y: f32[B]) {
      compute {
        each b: B { seq t: L { s[b, t] = exp(pad(s[b, t-1], 0) * x[b, t]) } }
        y[b] = s[b, L-1]
      }
    }"""
    kernel, program = load_text(text)
    module = check(kernel, program, BIG).module
    assert module is not None
    assert "global s: f32[64, 2]" in module.nest
    assert module.nest.index("global s") < module.nest.index("parallel b")


def test_large_packed_copies_need_a_layout():
    text = """kernel k[N=%d](w: const f32[N], x: f32[N]) -> (y: f32[N]) {
      compute {
        t[i: N, j: N] = exp(w[i] * w[j])
        y[i] = sum[j: N](t[i, j] * x[j])
      }
    }"""
    kernel, program = load_text(text % 16)
    small = lower(kernel, program, TARGET).module
    assert small is not None and [t.name for t in small.packed] == ["t"]
    kernel, program = load_text(text % 2000)
    large = lower(kernel, program, TARGET).module
    assert large is not None and large.packed == ()
