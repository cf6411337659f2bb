"""Traffic of whole kernels: the estimate for rows that data choose, strides and fused loops."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgekernelbench.analysis.traffic import footprint_bytes, level_traffic
from edgekernelbench.lowering import nest
from tests.lowering.support import TARGET, load_text, must_lower

GALLERY = Path(__file__).parents[2] / "gallery"
KIB = 1 << 10


CPU = TARGET.model_copy(update={"vector_bits": 256})


def lowered(text: str) -> nest.Function:
    module = must_lower(*load_text(text), CPU).module
    assert module is not None
    return module.main


def test_rows_that_data_choose_are_counted_once_each():
    function = lowered((GALLERY / "embedding_bag_sum__01.ekir").read_text())
    bags, looked_up, width = 64, 20, 16
    rows = bags * looked_up * width * 4
    indices, out = bags * looked_up * 4, bags * width * 4
    low = level_traffic(function, (32 * KIB,))[0].bytes
    assert rows <= low <= 1.1 * (rows + indices + out)
    assert footprint_bytes(function) < 2 * rows


LOOKED_UP = """
kernel take[N=100, M=1000, K=32](t: f32[M, K], idx: s32[N]) -> (y: f32[N, K]) { compute {
  r[i: N] = min(max(idx[i], 0), M - 1)
  y[i: N, k: K] = t[r[i], k] * 2
} }
"""


def test_no_more_rows_than_there_are_iterations():
    assert footprint_bytes(lowered(LOOKED_UP)) == pytest.approx(2 * 100 * 32 * 4, rel=0.1)


@pytest.mark.parametrize("name", sorted(p.stem for p in GALLERY.glob("*.ekir")))
def test_what_l1_loads_is_not_beyond_what_the_kernel_reads(name: str):
    """An estimate above one load or store for each that is executed would be absurd."""
    function = lowered((GALLERY / f"{name}.ekir").read_text())
    executed = _executed(function.body)
    low, high = level_traffic(function, (32 * KIB, 512 * KIB))
    assert high.bytes <= low.bytes <= executed


def _executed(body: nest.Stmt, times: float = 1.0) -> float:
    from edgekernelbench.analysis.traffic import _Model, _parts, accesses

    extents = _Model(body)

    def count(statement: nest.Stmt, times: float) -> float:
        if isinstance(statement, nest.For):
            times *= extents.extent(statement)
        parts = _parts(statement)
        if parts:
            return sum(count(part, times) for part in parts)
        return times * sum(access.tensor.dtype.bytes for access in accesses(statement))

    return count(body, times)


WAVES = """
kernel paths[N=200](x: f32[N, N]) -> (y: f32[N, N]) { compute {
  seq i: N { seq j: N {
    f[i, j] = x[i, j] + min(pad(f[i - 1, j], 0), pad(f[i, j - 1], 0))
  } }
  y[i, j] = f[i, j]
} schedule for cpu { WAVE } }
"""


@pytest.mark.parametrize("line", ["wave f (i, vectorize j)", "wave f (j, vectorize i)", ""])
def test_a_diagonal_does_not_touch_all_of_a_tensor(line: str):
    function = lowered(WAVES.replace("WAVE", line))
    levels = level_traffic(function, (32 * KIB, 512 * KIB))
    assert levels[1].bytes <= levels[0].bytes <= _executed(function.body)


REVISITED = """kernel k(x: f32[64, 1024], z: f32[256]) -> (y: f32[256, 1024]) {
  compute { y[s: 256, i: 1024] = x[%s, i] + z[s] }
  schedule for cpu { loops y (s, i by 64, vectorize i) }
}"""


def test_rows_that_a_remainder_picks_are_loaded_once_while_they_stay():
    out = 256 * 1024 * 4 + 256 * 4

    def rows(index: str, capacity: int) -> float:
        (level,) = level_traffic(lowered(REVISITED % index), (capacity,))
        return (level.bytes - out) / 4096

    assert rows("s % 2", 32 * KIB) == 2
    assert rows("s % 16", 32 * KIB) == 256  # sixteen rows do not stay
    assert rows("s % 16", 512 * KIB) == 16
    assert rows("s % 64", 32 * KIB) == 256
