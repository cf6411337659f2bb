"""The guess at a time: what it must tell apart."""

from __future__ import annotations

import pytest

from edgekernelbench.analysis.estimate import Estimate, estimate
from tests.lowering.support import TARGET, load_text, must_lower

CPU = TARGET.model_copy(update={"vector_bits": 256})
KERNEL = """kernel k(x: f32[64, 1024], z: f32[256]) -> (y: f32[256, 1024]) {
  compute { y[s: 256, i: 1024] = x[%s] + z[s] }
  schedule for cpu { loops y (s, i by 64, vectorize i) }
}"""


def guess(text: str) -> Estimate:
    module = must_lower(*load_text(text), CPU).module
    assert module is not None
    return estimate(module, CPU)


@pytest.mark.parametrize("row", ["s % 2", "s // 4", "(s * 3) % 5", "min(s, 63)"])
def test_a_row_that_is_the_same_for_all_lanes_gathers_nothing(row: str) -> None:
    plain, picked = guess(KERNEL % "0, i"), guess(KERNEL % f"{row}, i")
    assert picked.share("apart") == 0
    assert picked.compute_us == pytest.approx(plain.compute_us)


@pytest.mark.parametrize("index", ["i % 64, s", "s % 2, (7 * i) % 1024", "(i * i) % 64, 0"])
def test_lanes_that_lie_apart_do(index: str) -> None:
    assert guess(KERNEL % index).share("apart") > 0.5
