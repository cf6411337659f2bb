"""Negative controls; that they fail on every workload is a rule of `suite.check`."""

from __future__ import annotations

import numpy as np
import pytest

from edgekernelbench.ir.dtypes import DType
from edgekernelbench.suite import TensorSpec, load_suite
from edgekernelbench.suite.controls import CONTROL_KINDS, controls, draw_sample, poison


def test_every_kind_of_control_applies_somewhere():
    sample = draw_sample(load_suite().workloads["fc_autoencoder__01"], 0)
    assert {control.kind for control in controls(sample)} == set(CONTROL_KINDS)


@pytest.mark.parametrize("dtype", [DType.F32, DType.F16, DType.S8, DType.U8, DType.S32])
def test_poison_differs_from_seed_to_seed(dtype):
    spec = TensorSpec(name="y", dtype=dtype, shape=(64, 3))
    first, again, other = poison(spec, 1), poison(spec, 1), poison(spec, 2)
    assert first.dtype == dtype.numpy and first.shape == (64, 3)
    assert np.array_equal(first, again, equal_nan=dtype.is_float)
    assert not np.array_equal(first, other, equal_nan=dtype.is_float)
