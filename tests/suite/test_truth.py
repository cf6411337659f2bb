"""The truth and its cache."""

from __future__ import annotations

import os

import numpy as np
import pytest

from edgekernelbench.suite import load_suite, truth
from edgekernelbench.suite.patterns.registry import Pattern

WORKLOAD = load_suite().workloads["cholesky_batched__02"]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("EDGEKERNELBENCH_CACHE", str(tmp_path))
    return tmp_path / "truth"


@pytest.fixture
def calls(monkeypatch):
    """Counts how often the reference really runs."""
    count = []
    compute = truth.compute_truth
    monkeypatch.setattr(truth, "compute_truth", lambda *args: count.append(1) or compute(*args))
    return count


def test_truth_is_float64_or_the_declared_integer():
    assert WORKLOAD.truth(WORKLOAD.inputs(1))["L_"].dtype == np.float64
    index = load_suite().workloads["argmax_channel_nchw__01"]
    assert index.truth(index.inputs(1))["y"].dtype == np.int32


def test_the_second_time_it_comes_from_disk(cache, calls):
    inputs = WORKLOAD.inputs(1)
    first, second = WORKLOAD.truth(inputs), WORKLOAD.truth(inputs)
    assert np.array_equal(first["L_"], second["L_"]) and len(calls) == 1
    assert [file.suffix for file in cache.iterdir()] == [".npz"]


def test_without_cache_nothing_is_written(cache):
    WORKLOAD.truth(WORKLOAD.inputs(1), cache=False)
    assert not cache.exists()


def test_any_changed_byte_is_another_entry(calls):
    inputs = WORKLOAD.inputs(1)
    WORKLOAD.truth(inputs)
    inputs["A"][0, 0, 0] = np.nextafter(inputs["A"][0, 0, 0], 9)
    WORKLOAD.truth(inputs)
    assert len(calls) == 2


def test_a_changed_reference_is_another_entry(monkeypatch):
    inputs = WORKLOAD.inputs(1)
    before = truth.truth_key(WORKLOAD, inputs)

    def other(A):
        return 2 * A

    pattern = Pattern("cholesky_batched", other)
    monkeypatch.setitem(WORKLOAD.definition.__dict__, "pattern", pattern)
    assert truth.truth_key(WORKLOAD, inputs) != before


@pytest.mark.parametrize("damage", [b"", b"PK\x03\x04 not a zip", None])
def test_damaged_entries_are_computed_anew(cache, calls, damage):
    inputs = WORKLOAD.inputs(1)
    right = WORKLOAD.truth(inputs)["L_"]
    file = next(cache.iterdir())
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2] if damage is None else damage)
    assert np.array_equal(WORKLOAD.truth(inputs)["L_"], right)
    assert len(calls) == 2
    WORKLOAD.truth(inputs)
    assert len(calls) == 2, "the damaged entry was not replaced"


def test_flipped_bits_are_noticed(cache, calls):
    inputs = WORKLOAD.inputs(1)
    right = WORKLOAD.truth(inputs)["L_"]
    file = next(cache.iterdir())
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0x40
    file.write_bytes(bytes(data))
    assert np.array_equal(WORKLOAD.truth(inputs)["L_"], right)
    assert len(calls) == 2


def test_pickles_are_not_loaded(cache):
    inputs = WORKLOAD.inputs(1)
    WORKLOAD.truth(inputs)
    file = next(cache.iterdir())
    with file.open("wb") as stream:
        np.savez(stream, L_=np.array([print], dtype=object))
    assert WORKLOAD.truth(inputs)["L_"].dtype == np.float64


def test_the_cache_forgets_what_was_unused_longest(cache, monkeypatch):
    WORKLOAD.truth(WORKLOAD.inputs(1))
    size = next(cache.iterdir()).stat().st_size
    monkeypatch.setattr(truth, "CACHE_LIMIT", 2 * size)
    oldest = next(cache.iterdir())
    os.utime(oldest, (1, 1))
    for seed in (2, 3):
        WORKLOAD.truth(WORKLOAD.inputs(seed))
    assert len(list(cache.iterdir())) == 2
    assert not oldest.exists()


def test_a_place_that_cannot_be_written_costs_only_time(monkeypatch, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("EDGEKERNELBENCH_CACHE", str(blocked))
    assert WORKLOAD.truth(WORKLOAD.inputs(1))["L_"].shape == (64, 6, 6)


def test_a_reference_of_the_wrong_shape_is_our_bug(monkeypatch):
    pattern = Pattern("cholesky_batched", lambda A: A[0])
    monkeypatch.setitem(WORKLOAD.definition.__dict__, "pattern", pattern)
    with pytest.raises(RuntimeError, match="shape"):
        WORKLOAD.truth(WORKLOAD.inputs(1), cache=False)
