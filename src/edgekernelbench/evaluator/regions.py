"""Memory that parent and child share, and what it looks like.

Inputs travel in sealed memory files: the child can map and read them, and no process can change
them any more. Outputs come back in a memory file of the parent's, of fixed size. In the child all
arrays of a contestant lie in one `Arena`, with guard bytes around each.
"""

from __future__ import annotations

import fcntl
import math
import mmap
import os
from collections.abc import Iterable, Mapping

import numpy as np
from pydantic import BaseModel, ConfigDict

from edgekernelbench.ir.dtypes import DType

_ALIGN = 64
_HUGE_PAGE = 2 << 20
_GUARD = 4096
_F_ADD_SEALS = 1033
_SEAL_SIZE = 0x0002 | 0x0004  # no shrinking, no growing
_SEAL_ALL = 0x0001 | _SEAL_SIZE | 0x0008  # and no more seals, no writing


class Slot(BaseModel):
    """Where one array lies in a region."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    dtype: DType
    shape: tuple[int, ...]
    offset: int

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.bytes

    @property
    def end(self) -> int:
        return self.offset + self.bytes


class Layout(BaseModel):
    """Arrays in one region of ``size`` bytes, in ascending order, 64-byte aligned."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    slots: tuple[Slot, ...]
    size: int

    def views(self, region: np.ndarray) -> dict[str, np.ndarray]:
        """The arrays within a one-dimensional uint8 array of at least ``size`` bytes."""
        return {
            slot.name: region[slot.offset : slot.end].view(slot.dtype.numpy).reshape(slot.shape)
            for slot in self.slots
        }

    def gaps(self) -> tuple[tuple[int, int], ...]:
        """The byte ranges between, before and behind the arrays."""
        edges = [0, *(edge for slot in self.slots for edge in (slot.offset, slot.end)), self.size]
        return tuple(zip(edges[::2], edges[1::2], strict=True))


Named = Iterable[tuple[str, DType, tuple[int, ...]]]


def packed(arrays: Named) -> Layout:
    """Arrays one after the other."""
    return _lay_out(arrays, 0, 0)


def guarded(arrays: Named, align: int = _ALIGN) -> Layout:
    """Arrays with guard bytes before and behind each; each begins at a multiple of ``align``.

    The distances differ, so that no two arrays start at the same place of a memory page: caches
    would make that slow, on every contestant alike but not on a device in use.
    """
    return _lay_out(arrays, _GUARD, 3 * align, align)


def _lay_out(arrays: Named, guard: int, stagger: int, align: int = _ALIGN) -> Layout:
    slots = []
    position = guard
    for number, (name, dtype, shape) in enumerate(arrays):
        position = -(-position // align) * align + (number * stagger if guard else 0)
        slot = Slot(name=name, dtype=dtype, shape=shape, offset=position)
        slots.append(slot)
        position = slot.end + guard
    return Layout(slots=tuple(slots), size=max(_ALIGN, -(-position // _ALIGN) * _ALIGN))


# ---------------------------------------------------------------- memory files
class Shared:
    """A memory file of the parent's, of fixed size. ``fd`` may be handed to children."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.fd = os.memfd_create("region", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.fd, size)
        self._map: mmap.mmap | None = mmap.mmap(self.fd, size)
        fcntl.fcntl(self.fd, _F_ADD_SEALS, _SEAL_SIZE)

    def copy(self) -> np.ndarray:
        """The bytes as they are now, in memory that no child can reach."""
        assert self._map is not None
        return np.frombuffer(self._map, np.uint8).copy()

    def close(self) -> None:
        if self._map is not None:
            self._map.close()
            self._map = None
            os.close(self.fd)


class Sealed:
    """A memory file that nobody can change. ``fd`` may be handed to children."""

    def __init__(self, data: bytes | memoryview) -> None:
        self.size = len(data)
        self.fd = os.memfd_create("sealed", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        written = 0
        while written < self.size:
            written += os.write(self.fd, data[written : written + (1 << 30)])
        fcntl.fcntl(self.fd, _F_ADD_SEALS, _SEAL_ALL)
        self._open = True

    @classmethod
    def of_arrays(cls, layout: Layout, arrays: Mapping[str, np.ndarray]) -> Sealed:
        region = np.zeros(layout.size, np.uint8)
        for name, view in layout.views(region).items():
            view[...] = arrays[name]
        return cls(memoryview(region.data))

    def close(self) -> None:
        if self._open:
            self._open = False
            os.close(self.fd)


def read_only(fd: int, size: int) -> np.ndarray:
    """The bytes of a sealed file, mapped."""
    return np.frombuffer(mmap.mmap(fd, size, prot=mmap.PROT_READ), np.uint8)


def writable(fd: int, size: int) -> np.ndarray:
    """The bytes of a shared file, mapped."""
    return np.frombuffer(mmap.mmap(fd, size), np.uint8)


# ---------------------------------------------------------------- in the child
class Arena:
    """All arrays of a contestant in one piece of private memory, filled with ``pattern``."""

    def __init__(self, layout: Layout, pattern: int) -> None:
        size = (-(-layout.size // _HUGE_PAGE) + 1) * _HUGE_PAGE
        memory = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        memory.madvise(mmap.MADV_HUGEPAGE)
        whole = np.frombuffer(memory, np.uint8)
        start = -whole.ctypes.data % _HUGE_PAGE
        self.bytes = whole[start : start + layout.size]
        self.bytes.view(np.uint64).fill(pattern)
        self.arrays = layout.views(self.bytes)


def fill(array: np.ndarray, pattern: int) -> None:
    """Overwrites an array with a repeated 8-byte pattern."""
    data = array.reshape(-1).view(np.uint8)
    whole = data.size // 8 * 8
    data[:whole].view(np.uint64).fill(pattern)
    data[whole:] = np.frombuffer(pattern.to_bytes(8, "little"), np.uint8)[: data.size - whole]


def gap_damage(layout: Layout, region: np.ndarray, pattern: int) -> tuple[int, int] | None:
    """The first guard bytes that are not what the arena was filled with: (offset, count)."""
    expected = np.frombuffer(pattern.to_bytes(8, "little"), np.uint8)
    for start, end in layout.gaps():
        wanted = expected[np.arange(start, end) % 8]
        bad = np.flatnonzero(region[start:end] != wanted)
        if bad.size:
            return start + int(bad[0]), int(bad.size)
    return None
