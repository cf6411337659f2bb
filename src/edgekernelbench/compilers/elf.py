"""Size of the machine code in an ELF file."""

from __future__ import annotations

import struct
from pathlib import Path

_SHF_EXECINSTR = 4


def code_bytes(path: Path) -> int | None:
    """Bytes of all executable sections; None when the file is no 64- or 32-bit ELF file."""
    data = path.read_bytes()
    if len(data) < 64 or data[:4] != b"\x7fELF":
        return None
    wide, order = data[4] == 2, "<" if data[5] == 1 else ">"
    if wide:
        offset = struct.unpack_from(order + "Q", data, 40)[0]
        size, count = struct.unpack_from(order + "HH", data, 58)
    else:
        offset = struct.unpack_from(order + "I", data, 32)[0]
        size, count = struct.unpack_from(order + "HH", data, 46)
    total = 0
    for index in range(count):
        entry = offset + index * size
        if wide:
            flags, length = (struct.unpack_from(order + "Q", data, entry + at)[0] for at in (8, 32))
        else:
            flags, length = (struct.unpack_from(order + "I", data, entry + at)[0] for at in (8, 20))
        if flags & _SHF_EXECINSTR:
            total += length
    return total
