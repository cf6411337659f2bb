"""Tiles of placed stages whose place depends on data, and what tiles must not be written beside."""

from __future__ import annotations

import pytest

from edgekernelbench.lowering.lower import lower

from .support import TARGET, check, load_text

GATHERS = {
    "an index in another layout": """kernel k(x: f32[6], i: s32[4]) -> (y: f32[4]) {
      compute {
        s[a: 6] = x[a] * 2
        y[c] = s[clamp(i[c], 0, 5)] + 1
      }
      schedule for cpu { place s in y.c }
      memory for cpu { layout i [d] -> [d // 2, d % 2] }
    }""",
    "a constant index in another layout": """kernel k(x: f32[6], i: const s32[4]) -> (y: f32[4]) {
      compute {
        s[a: 6] = x[a] * 2
        y[c] = s[clamp(i[c], 0, 5)] + 1
      }
      schedule for cpu { place s in y.c }
      memory for cpu { layout i [d] -> [d // 2, d % 2] }
    }""",
    "an index computed in the loop, before": """kernel k(x: f32[6], i: s32[4]) -> (y: f32[4]) {
      compute {
        d[c: 4] = i[c] + 1
        s[a: 6] = x[a] * 2
        y[c] = s[clamp(d[c], 0, 5)] + 1
      }
      schedule for cpu { place s, d in y.c }
    }""",
    "an index computed in the loop, afterwards": """kernel k(x: f32[6], i: s32[4]) -> (y: f32[4]) {
      compute {
        s[a: 6] = x[a] * 2
        d[c: 4] = i[c] + 1
        y[c] = s[clamp(d[c], 0, 5)] + 1
      }
      schedule for cpu { place s, d in y.c }
    }""",
    "an index computed further inside": """kernel k(x: f32[6], i: s32[4]) -> (y: f32[4, 3]) {
      compute {
        d[c: 4] = i[c] + 1
        s[a: 6] = x[a] * 2
        y[c, j] = s[clamp(d[2], 0, 5)] + d[c] + d[j]
      }
      schedule for cpu { place s in y.c place d in y.j }
    }""",
    "an index from a contracted history": """kernel k(x: f32[6], i: s32[4]) -> (y: f32[5, 4]) {
      compute {
        seq t: 5 {
          d[t, c: 4] = pad(d[t - 1, c], 2) % 5 + i[c]
          s[a: 6] = x[a] * 2
          y[t, c: 4] = s[clamp(d[t, c], 0, 5)] + 1
        }
      }
      schedule for cpu { place s in y.c }
    }""",
}


@pytest.mark.parametrize("name", GATHERS)
def test_tiles_may_begin_at_an_index_read_from_data(name: str) -> None:
    kernel, program = load_text(GATHERS[name])
    check(kernel, program)


def test_a_tile_of_one_element_is_addressed_without_the_index() -> None:
    kernel, program = load_text(GATHERS["an index in another layout"])
    module = check(kernel, program).module
    assert module is not None
    assert "s[0] = x[" in module.nest


BESIDE = """kernel k(x: f32[12]) -> (y: f32[12]) {
  compute {
    t[i: 12] = x[i] * 2
    c[i: 12] = t[i] + 1
    y[k] = %s
  }
  schedule for cpu { loops y (k by 4, k) loops t (i by %d, i) place t in y.k0 place c in t.i0 }
}"""


@pytest.mark.parametrize(
    ("value", "step"), [("c[k] + 1", 2), ("c[k] + pad(c[k - 1], 0)", 3), ("c[11 - k]", 4)]
)
def test_a_consumer_placed_in_a_placed_stage_fills_its_tile(value: str, step: int) -> None:
    kernel, program = load_text(BESIDE % (value, step))
    check(kernel, program)


def test_a_consumer_is_not_computed_beside_its_tile() -> None:
    """``t`` is wanted whole in each iteration of ``k0``, ``c`` in parts."""
    kernel, program = load_text(BESIDE % ("c[k] + t[11 - k]", 2))
    result = lower(kernel, program, TARGET)
    assert result.module is None
    (found,) = result.diagnostics
    assert (found.rule.code, found.span is None) == ("E431", False)
    assert "`t` makes more of `c` along `i` than is kept" in found.message
    assert "place `c` where `t` is placed" in found.help[0]


def test_stages_that_only_feed_each_other_are_unrelated_to_the_loop() -> None:
    text = """kernel k(x: f32[6]) -> (y: f32[6]) {
      compute {
        t[i: 6] = x[i] * 2
        p[i: 6] = t[i] + 1
        m[i: 6] = x[i] + 3
        y[k] = p[k] + m[k]
      }
      schedule for cpu {
        loops y (k by 3, k) loops m (i) loops t (i)
        place m in y.k0 place t in m.i place p in t.i
      }
    }"""
    kernel, program = load_text(text)
    result = lower(kernel, program, TARGET)
    assert [d.rule.code for d in result.diagnostics] == ["E422"]
    assert "`t` neither feeds nor reads what runs in that loop of `m`" in (
        result.diagnostics[0].message
    )
