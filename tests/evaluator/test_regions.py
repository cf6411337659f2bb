"""Shared memory: what the child gets it cannot change, and stray writes are seen."""

from __future__ import annotations

import mmap
import os

import numpy as np
import pytest

from edgekernelbench.evaluator.regions import (
    Arena,
    Sealed,
    Shared,
    fill,
    gap_damage,
    guarded,
    packed,
    read_only,
    writable,
)
from edgekernelbench.ir.dtypes import DType

PATTERN = 0x0123_4567_89AB_CDEF
NAMED = (
    ("a", DType.F32, (3, 5)),
    ("b", DType.U8, (7,)),
    ("s", DType.F16, ()),
    ("c", DType.BOOL, (2, 2)),
    ("d", DType.S64, (1000,)),
)


def test_layouts() -> None:
    for layout in (packed(NAMED), guarded(NAMED)):
        assert [slot.name for slot in layout.slots] == ["a", "b", "s", "c", "d"]
        assert all(slot.offset % 64 == 0 for slot in layout.slots)
        assert layout.size % 64 == 0
        views = layout.views(np.zeros(layout.size, np.uint8))
        assert {n: (v.dtype, v.shape) for n, v in views.items()} == {
            name: (dtype.numpy, shape) for name, dtype, shape in NAMED
        }
    layout = guarded(NAMED)
    assert all(end - start >= 4096 for start, end in layout.gaps())
    assert len({slot.offset % 4096 for slot in layout.slots}) == len(NAMED)
    assert packed(()).size > 0


def test_sealed_files_cannot_be_changed() -> None:
    layout = packed(NAMED)
    rng = np.random.default_rng(1)
    arrays = {n: (rng.random(shape) * 100).astype(d.numpy) for n, d, shape in NAMED}
    sealed = Sealed.of_arrays(layout, arrays)
    views = layout.views(read_only(sealed.fd, sealed.size))
    for name, array in arrays.items():
        np.testing.assert_array_equal(views[name], array)
    for attempt in (
        lambda: os.pwrite(sealed.fd, b"x", 0),
        lambda: os.ftruncate(sealed.fd, 0),
        lambda: mmap.mmap(sealed.fd, sealed.size),
    ):
        with pytest.raises(PermissionError):
            attempt()
    sealed.close()
    sealed.close()


def test_shared_file_keeps_its_size_and_is_copied_out() -> None:
    shared = Shared(8192)
    child = writable(shared.fd, shared.size)
    child[5] = 7
    copy = shared.copy()
    child[5] = 8
    assert copy[5] == 7
    with pytest.raises(PermissionError):
        os.ftruncate(shared.fd, 10)
    shared.close()


def test_arena_and_damage() -> None:
    layout = guarded(NAMED)
    arena = Arena(layout, PATTERN)
    assert all(a.ctypes.data % 64 == 0 for a in arena.arrays.values())
    for array in arena.arrays.values():
        fill(array, 0)
    assert gap_damage(layout, arena.bytes, PATTERN) is None
    for slot in layout.slots:
        for position in (slot.offset - 1, slot.end):
            kept = arena.bytes[position]
            arena.bytes[position] ^= 0xFF
            assert gap_damage(layout, arena.bytes, PATTERN) == (position, 1)
            arena.bytes[position] = kept
    assert gap_damage(layout, arena.bytes, PATTERN) is None


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 17])
def test_fill_overwrites_every_byte_and_no_other(count: int) -> None:
    whole = np.zeros(64, np.uint8)
    fill(whole[8 : 8 + count], PATTERN)
    expected = (PATTERN.to_bytes(8, "little") * 3)[:count]
    assert whole[8 : 8 + count].tobytes() == expected
    assert not whole[:8].any() and not whole[8 + count :].any()
