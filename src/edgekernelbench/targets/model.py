"""A target: the profile of a device that kernels are built for and measured on."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

Backend = Literal["llvm", "cuda", "opencl"]


class Target(BaseModel):
    """One device. Bytes, bytes per second, operations per second.

    Attributes:
        name: what ``--target`` takes.
        backend: code generator; it decides which layers of a kernel apply.
        mcpu: LLVM's name of the CPU, for ``llvm``.
        mattr: LLVM CPU features to switch on or off (``+neon``).
        features: what the CPU has beyond its base, as LLVM calls it (``avx512vnni``): instructions
            that need one of these are used only where it is told.
        mtriple: LLVM target triple, for cross compilation; None is this host.
        threads: cores that candidate and baselines may use alike.
        vector_bits: SIMD width.
        cache_bytes: data cache sizes from L1 to the last level.
        memory_bytes: what a kernel and its tensors may take in all.
        dtypes_missing: dtypes that the device cannot compute with.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    backend: Backend
    description: str = ""
    mcpu: str | None = None
    mattr: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    mtriple: str | None = None
    threads: int
    vector_bits: int
    cache_bytes: tuple[int, ...]
    memory_bytes: int
    dtypes_missing: tuple[str, ...] = ()

    @property
    def section_names(self) -> tuple[str, str]:
        """Layer names that apply, the more specific first: ``("llvm", "cpu")``."""
        return (self.backend, "cpu" if self.backend == "llvm" else "gpu")
