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


MAP = """kernel k(x: f32[64, 1024]) -> (y: f32[64, 1024]) {
  compute { y[s: 64, i: 1024] = exp(x[s, i]) }
  schedule for cpu { loops y (%s) }
}"""
SUM = """kernel k(x: %(dtype)s[64, 1024]) -> (y: %(dtype)s[1024]) {
  compute { y[i: 1024] = sum[s: 64](x[s, i]) }
  schedule for cpu { loops y (i by 128, %(loops)s) }
}"""


def test_a_loop_that_stores_side_by_side_is_vectorised_unasked() -> None:
    plain, asked = guess(MAP % "s, i"), guess(MAP % "s, vectorize i")
    assert plain.us == pytest.approx(asked.us) and plain.share("scalar") == 0
    assert guess(MAP % "i, s").share("scalar") == 1, "lanes would lie apart"


def test_sums_of_integers_are_vectorised_unasked_and_those_of_floats_perhaps() -> None:
    integers, asked = (
        guess(SUM % {"dtype": "s32", "loops": x}) for x in ("s, i", "s, vectorize i")
    )
    assert integers.us == integers.least_us == pytest.approx(asked.us, rel=0.01)
    floats, asked = (guess(SUM % {"dtype": "f32", "loops": x}) for x in ("s, i", "s, vectorize i"))
    assert floats.compute_us > 3 * asked.compute_us and floats.share("scalar") > 0.5
    assert floats.least_us == pytest.approx(asked.us, rel=0.1)
    one_place = guess(SUM % {"dtype": "f32", "loops": "i, s"})
    assert one_place.least_compute_us == one_place.compute_us > 3 * asked.compute_us


def test_copies_of_a_body_share_what_they_all_load() -> None:
    kernel = """kernel k(x: f32[64, 64], w: f32[64, 64]) -> (y: f32[64, 64]) {
      compute { y[i: 64, j: 64] = sum[k: 64](x[i, k] * w[k, j]) }
      schedule for cpu { loops y (i by 8, j by 8, k, %s, vectorize j) }
    }"""
    assert guess(kernel % "unroll i").compute_us < 0.8 * guess(kernel % "i").compute_us


def test_a_kernel_that_does_next_to_nothing_takes_a_call() -> None:
    one = guess(MAP.replace("64", "1").replace("1024", "8") % "s, vectorize i")
    assert one.compute_us < 0.5 < 1 <= one.us
