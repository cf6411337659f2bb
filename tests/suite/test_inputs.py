"""Inputs that are drawn in a special way; `suite.check` looks at all of them."""

from __future__ import annotations

import numpy as np
import pytest

from edgekernelbench.ir.check import check_text
from edgekernelbench.ir.interpret import interpret
from edgekernelbench.suite import load_suite


def test_large_and_secret_seeds_are_fine():
    workload = load_suite().workloads["cholesky_batched__02"]
    assert np.isfinite(workload.inputs(2**62 - 1)["A"]).all()


def test_tensors_do_not_share_a_stream():
    inputs = load_suite().workloads["add__03"].inputs(1)
    assert not np.array_equal(inputs["a"], inputs["b"])


def test_special_inputs():
    workloads = load_suite().workloads
    csr = workloads["spmm_csr__01"].inputs(3)
    assert csr["ptr"][0] == 0 and csr["ptr"][-1] == 13264 and (np.diff(csr["ptr"]) >= 0).all()
    assert csr["col"].min() >= 0 and csr["col"].max() < 2708
    spd = workloads["cholesky_batched__02"].inputs(3)["A"]
    assert np.linalg.cond(spd).max() < 100
    plant = workloads["admm_mpc_iteration__01"].inputs(3)
    assert np.abs(np.linalg.eigvals(plant["A"])).max() < 1
    rope = workloads["rope_half_split__01"].inputs(3)
    assert np.allclose(rope["cos"] ** 2 + rope["sin"] ** 2, 1, atol=1e-6)
    scan = workloads["mamba_selective_scan__01"].inputs(3)
    assert (scan["A"] < 0).all() and (scan["dt"] > 0).all()
    logits = workloads["argmax_channel_nchw__01"].inputs(3)["x"]
    assert ((logits == logits.max(axis=0)).sum(axis=0) > 1).mean() > 0.01, "ties are not tested"
    mel = workloads["log_mel_filterbank__01"].inputs(3)["fb"]
    assert (mel >= 0).all() and (mel > 0).any(axis=0).all() and (mel > 0).mean() < 0.1


@pytest.mark.parametrize(
    ("id", "careless"),
    [
        ("softmax_last__01", "e[i: M, c: C] = exp(x[i, c]) y[i, c] = e[i, c] / sum[k: C](e[i, k])"),
        (
            "log_softmax_last__01",
            "s[i: M] = log(sum[k: C](exp(x[i, k]))) y[i, c] = x[i, c] - s[i]",
        ),
        ("sigmoid__01", "y[i] = exp(x[i]) / (1.0 + exp(x[i]))"),
    ],
)
def test_formulas_that_overflow_fail(id, careless):
    workload = load_suite().workloads[id]
    program = check_text(f"{workload.header()} {{ compute {{ {careless} }} }}").program
    assert program is not None
    for seed in range(4):
        inputs = workload.inputs(seed)
        exact = interpret(program, inputs, "f64")
        rounded = interpret(program, inputs, "declared")
        assert workload.compare(exact, workload.truth(inputs, cache=False)).passed
        assert not workload.compare(rounded, workload.truth(inputs, cache=False)).passed
