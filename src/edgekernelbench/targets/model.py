"""A target: the profile of a device that kernels are built for and measured on."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, model_validator

from edgekernelbench.targets.device import CudaDevice, Device, OpenClDevice

Backend = Literal["llvm", "c", "cuda", "opencl"]


class Gpu(BaseModel):
    """What kernels of a GPU must keep within, and the shape of its groups of threads.

    Attributes:
        arch: NVIDIA's name of the architecture (``sm_87``), None elsewhere.
        max_threads: threads of one block (work items of a group).
        shared_bytes: shared (local) memory of one block, allocated statically.
        warp: threads that run in step.
        units: multiprocessors (compute units).
        shared_optin_bytes: shared memory of a block in all, where its launch asks for it; None: no
            more than ``shared_bytes``.
        registers: of one thread; None: no limit that the toolchain does not keep itself.
        registers_block: of all threads of a block together.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    arch: str | None = None
    max_threads: int = 256
    shared_bytes: int = 32 * 1024
    warp: int = 32
    units: int = 16
    shared_optin_bytes: int | None = None
    registers: int | None = None
    registers_block: int | None = None

    @property
    def sure_threads(self) -> int:
        """Threads of a block that any kernel may have. A driver of OpenCL runs fewer than its
        device's limit of kernels with many registers (NVIDIA's: 256)."""
        return min(256, self.max_threads) if self.arch is None else self.max_threads


class RatedPeak(BaseModel):
    """The most that a device can do of one thing, as its profile says.

    Attributes:
        of: ``bandwidth`` (bytes read and written), or the dtype of multiply-adds that count 2.
        rate: a second.
        source: ``vendor``: derived from its documents; ``measured``: by kernels in the IR; ``own``:
            whoever wrote the profile vouches for it.
        spread: half width of the 95 % interval of the measured median, relative.
        working_set: bytes that the measuring kernel touches, of a bandwidth.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    of: str
    rate: float
    source: Literal["vendor", "measured", "own"]
    spread: float | None = None
    working_set: int | None = None


class Target(BaseModel):
    """One device. Bytes, bytes per second, operations per second.

    Attributes:
        name: what ``--target`` takes.
        backend: code generator; it decides which layers of a kernel apply.
        mcpu: LLVM's name of the CPU.
        mattr: LLVM CPU features to switch on or off (``+neon``).
        features: what the CPU has beyond its base, as LLVM calls it (``avx512vnni``): instructions
            that need one of these are used only where it is told.
        mtriple: LLVM target triple, for cross compilation; None is this host.
        threads: cores that candidate and baselines may use alike.
        vector_bits: SIMD width.
        cache_bytes: data cache sizes from L1 to the last level.
        memory_bytes: what a kernel and its tensors may take in all.
        buffer_bytes: the largest single tensor; None: no limit of its own.
        workspace_bytes: temporary memory of one call; None: no limit of its own.
        code_bytes: machine code; None: no limit.
        dtypes_missing: dtypes that the device cannot compute with.
        gpu: limits of a device with the ``cuda`` or ``opencl`` backend, None for a CPU.
        opencl: the OpenCL device that kernels run on; None where code is only generated.
        cuda: the same of the ``cuda`` backend.
        peaks: what a profile says that the device reaches at most.
        unreachable: why programs cannot be run on it from here; empty where they can, or where
            nobody said.
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
    buffer_bytes: int | None = None
    workspace_bytes: int | None = None
    code_bytes: int | None = None
    dtypes_missing: tuple[str, ...] = ()
    gpu: Gpu | None = None
    opencl: OpenClDevice | None = None
    cuda: CudaDevice | None = None
    peaks: tuple[RatedPeak, ...] = ()
    unreachable: str = ""

    @model_validator(mode="after")
    def _gpu_where_needed(self) -> Target:
        if (self.gpu is None) != self.on_cpu:
            raise ValueError(f"target {self.name!r}: `gpu` goes with the backends cuda and opencl")
        if (self.opencl and self.backend != "opencl") or (self.cuda and self.backend != "cuda"):
            raise ValueError(f"target {self.name!r}: its device has another backend")
        return self

    @property
    def device(self) -> Device | None:
        """What kernels run on, where that is not the host's processor by itself."""
        return self.opencl or self.cuda

    @property
    def section_names(self) -> tuple[str, str]:
        """Layer names that apply, the more specific first: ``("llvm", "cpu")``."""
        return (self.backend, "cpu" if self.on_cpu else "gpu")

    @property
    def on_cpu(self) -> bool:
        """Whether kernels run on a processor, with its loops, threads and vectors."""
        return self.backend in ("llvm", "c")

    @property
    def reference(self) -> Target:
        """The same device by way of the reference compiler: what baselines are built for."""
        if self.backend != "c":
            return self
        return self.model_copy(update={"name": "llvm", "backend": "llvm"})
