"""The C functions that a source takes with it: those that it calls, and what these call."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from pathlib import Path

from edgekernelbench.ir.dtypes import DType

PROLOGUE = """\
#include <stddef.h>
#include <stdint.h>

#define INLINE static inline __attribute__((always_inline))
#define SIMD _Pragma("omp simd")
#ifdef __clang__
#define UNROLL(n) _Pragma("unroll")
#else
#define UNROLL_TEXT(n) _Pragma(#n)
#define UNROLL(n) UNROLL_TEXT(GCC unroll n)
#endif

/* Nothing else is contracted: the compiler is told so. */
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA) || defined(__aarch64__) || defined(__riscv_flen)
#define mad_f32(a, b, c) __builtin_fmaf(a, b, c)
#define mad_f64(a, b, c) __builtin_fma(a, b, c)
#else
#define mad_f32(a, b, c) ((a) * (b) + (c))
#define mad_f64(a, b, c) ((a) * (b) + (c))
#endif
"""
"""What every source begins with."""

HALVES = """\
#if defined(__aarch64__) && defined(__FLT16_MAX__)
#define NATIVE_HALVES
#endif
"""
"""Where conversions of halves are instructions that compilers vectorise."""

_TOP = {
    ("f32", DType.S32): 2147483520.0,
    ("f32", DType.U32): 4294967040.0,
    ("f32", DType.S64): 9223371487098961920.0,
    ("f64", DType.S64): 9223372036854774784.0,
}
"""The largest float below each integer bound that the float dtype cannot hold."""

_INTEGERS = (DType.S8, DType.U8, DType.S16, DType.U16, DType.S32, DType.U32, DType.S64)
_NAME = re.compile(r"[A-Za-z_]\w*")


def _truncation(source: str, dtype: DType) -> str:
    """Truncates, saturates, and turns NaN into 0."""
    low, high = dtype.int_range
    kind, end = ("float", "f") if source == "f32" else ("double", "")
    name = c_type(dtype)
    top = _TOP.get((source, dtype))
    least, most = f"{float(low)!r}{end}", f"{float(high) if top is None else top!r}{end}"
    lines = [
        f"INLINE {name} {dtype.value}_of_{source}({kind} x) {{",
        f"  {kind} y = {most} < x ? {most} : x;",
        f"  y = {least} > y ? {least} : y;",
        f"  y = x == x ? y : 0.0{end};",
    ]
    wide = "int32_t" if dtype.bits < 32 else name
    if top is None:
        lines += [f"  return ({name})({wide})y;" if wide != name else f"  return ({name})y;"]
    else:
        over = f"{float(high + 1)!r}{end}"
        lines += [f"  return x >= {over} ? {integer(high, dtype)} : ({name})y;"]
    return "\n".join([*lines, "}"])


def c_type(dtype: DType) -> str:
    """The type of a value: halves are computed with as floats."""
    if dtype is DType.BOOL:
        return "_Bool"
    if dtype.is_float:
        return "double" if dtype is DType.F64 else "float"
    return f"{'' if dtype.is_signed else 'u'}int{dtype.bits}_t"


def integer(value: int, dtype: DType) -> str:
    """A literal."""
    if dtype is DType.U32:
        return f"{value}u"
    suffix = "ll" if dtype is DType.S64 else ""
    if dtype in (DType.S32, DType.S64) and value == dtype.int_range[0]:
        return f"(-{-value - 1}{suffix} - 1)"
    return f"{value}{suffix}"


@functools.cache
def library() -> dict[str, str]:
    """Every function's text by its name, in an order in which each follows what it calls."""
    file = Path(__file__).with_name("functions.c")
    paragraphs = file.read_text().split("\n\n")[1:]
    dots = Path(__file__).with_name("dots.c").read_text().split("\n\n")[1:]
    truncations = [_truncation(s, d) for s in ("f32", "f64") for d in _INTEGERS]
    found: dict[str, str] = {}
    for text in (*paragraphs, *dots, *truncations):
        head = re.search(r"^INLINE [\w *]+?(\w+)\(", text, re.MULTILINE)
        assert head is not None, text
        found[head[1]] = text.strip()
    return found


def closure(names: Iterable[str]) -> list[str]:
    """Texts of the named functions and of all that these call, callees first."""
    known = library()
    wanted: set[str] = set()
    pending = [name for name in names if name in known]
    while pending:
        name = pending.pop()
        if name not in wanted:
            wanted.add(name)
            pending += [w for w in _words(known[name]) if w in known and w not in wanted]
    return [text for name, text in known.items() if name in wanted]


def _words(text: str) -> list[str]:
    """The names in a text, without those in its comments."""
    return _NAME.findall(re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL))


def prologue(functions: list[str]) -> str:
    """What stands in front of a source with these functions."""
    parts = [PROLOGUE]
    joined = "\n".join(functions)
    if "NATIVE_HALVES" in joined:
        parts.append(HALVES)
    if "_mm" in joined:
        parts.insert(0, "#ifdef __x86_64__\n#include <immintrin.h>\n#endif\n")
    if "vld1q" in joined:
        parts.insert(0, "#include <arm_neon.h>\n")
    return "\n".join(parts)
