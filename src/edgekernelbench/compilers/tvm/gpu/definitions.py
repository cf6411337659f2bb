"""Small functions of CUDA and OpenCL that generated sources call."""

from __future__ import annotations

import re

PREFIX = "ekb_"


def with_definitions(source: str) -> str:
    """A source with what it calls by names with our prefix in front."""
    used = set(re.findall(rf"\b{PREFIX}(\w+)\(", source))
    return "".join(text for name, text in _definitions().items() if name in used) + source


def _definitions() -> dict[str, str]:
    out = {
        "load_rows": _MATRICES.format(name="load_rows", how=""),
        "load_columns": _MATRICES.format(name="load_columns", how=".trans"),
        "pack_2": _PACK_2,
        "pack_4": _PACK_4,
        "mma_f16_f16": _MMA_F16,
    }
    for a in ("s8", "u8"):
        for b in ("s8", "u8"):
            out[f"mma_{a}_{b}"] = _MMA_BYTES.format(a=a, b=b)
    # By its own name, the code generator takes one for a sum of floats, and emulates that.
    for name in ("add", "min", "max"):
        out[f"atomic_{name}"] = f"#define {PREFIX}atomic_{name} atomic_{name}\n"
    return out


_MATRICES = """\
static __device__ __forceinline__ void ekb_{name}(
    unsigned& r0, unsigned& r1, unsigned& r2, unsigned& r3, const void* row) {{
  unsigned at = (unsigned)__cvta_generic_to_shared(row);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4{how}.shared.b16 {{%0, %1, %2, %3}}, [%4];"
               : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "r"(at) : "memory");
}}
"""

_PACK_2 = """\
static __device__ __forceinline__ void ekb_pack_2(unsigned& r, const void* e0, const void* e1) {
  r = *(const unsigned short*)e0 | ((unsigned)*(const unsigned short*)e1 << 16);
}
"""

_PACK_4 = """\
static __device__ __forceinline__ void ekb_pack_4(
    unsigned& r, const void* e0, const void* e1, const void* e2, const void* e3) {
  r = *(const unsigned char*)e0 | ((unsigned)*(const unsigned char*)e1 << 8)
      | ((unsigned)*(const unsigned char*)e2 << 16) | ((unsigned)*(const unsigned char*)e3 << 24);
}
"""

# Turing has the instructions of half the depth, for bytes of half the rows too: the registers are
# the same ones.
_MMA_F16 = """\
static __device__ __forceinline__ void ekb_mma_f16_f16(
    float& c0, float& c1, float& c2, float& c3,
    unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0, unsigned b1) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
#else
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3) : "r"(a0), "r"(a1), "r"(b0));
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3) : "r"(a2), "r"(a3), "r"(b1));
#endif
}
"""

_MMA_BYTES = """\
static __device__ __forceinline__ void ekb_mma_{a}_{b}(
    int& c0, int& c1, int& c2, int& c3,
    unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0, unsigned b1) {{
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k32.row.col.s32.{a}.{b}.s32 "
      "{{%0, %1, %2, %3}}, {{%4, %5, %6, %7}}, {{%8, %9}}, {{%0, %1, %2, %3}};"
      : "+r"(c0), "+r"(c1), "+r"(c2), "+r"(c3)
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
#else
  asm("mma.sync.aligned.m8n8k16.row.col.s32.{a}.{b}.s32 {{%0, %1}}, {{%2}}, {{%3}}, {{%0, %1}};"
      : "+r"(c0), "+r"(c1) : "r"(a0), "r"(b0));
  asm("mma.sync.aligned.m8n8k16.row.col.s32.{a}.{b}.s32 {{%0, %1}}, {{%2}}, {{%3}}, {{%0, %1}};"
      : "+r"(c0), "+r"(c1) : "r"(a2), "r"(b1));
  asm("mma.sync.aligned.m8n8k16.row.col.s32.{a}.{b}.s32 {{%0, %1}}, {{%2}}, {{%3}}, {{%0, %1}};"
      : "+r"(c2), "+r"(c3) : "r"(a1), "r"(b0));
  asm("mma.sync.aligned.m8n8k16.row.col.s32.{a}.{b}.s32 {{%0, %1}}, {{%2}}, {{%3}}, {{%0, %1}};"
      : "+r"(c2), "+r"(c3) : "r"(a3), "r"(b1));
#endif
}}
"""
