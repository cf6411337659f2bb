"""GPUs that code can be generated for without one being there: limits of architectures as data."""

from __future__ import annotations

from edgekernelbench.errors import UsageError
from edgekernelbench.targets.model import Gpu, Target

CUDA_REGISTERS, CUDA_REGISTERS_BLOCK = 255, 64 << 10
"""Of a thread and of a block, on every architecture here."""

# name: (multiprocessors of the device in mind, memory in GiB, what it is). A block has up to 1024
# threads and 48 KiB of statically allocated shared memory on all of them.
_CUDA = {
    "sm_72": (8, 16, "Jetson AGX Xavier"),
    "sm_75": (40, 16, "Tesla T4"),
    "sm_80": (108, 40, "A100"),
    "sm_86": (28, 12, "GeForce RTX 3060"),
    "sm_87": (8, 8, "Jetson Orin Nano"),
    "sm_89": (24, 8, "GeForce RTX 4060"),
    "sm_90": (132, 141, "H200"),
    "sm_110": (20, 128, "Jetson AGX Thor"),
}


def cuda_architectures() -> tuple[str, ...]:
    """The architectures that `cuda_target` knows."""
    return tuple(_CUDA)


def cuda_target(arch: str) -> Target:
    """A target of an NVIDIA architecture.

    Raises:
        UsageError: for an architecture that is not in the table.
    """
    if arch not in _CUDA:
        known = ", ".join(f"cuda-{name}" for name in _CUDA)
        raise UsageError(f"architecture {arch!r} is unknown", f"targets for code only: {known}")
    units, gib, what = _CUDA[arch]
    gpu = Gpu(
        arch=arch,
        max_threads=1024,
        shared_bytes=48 << 10,
        warp=32,
        units=units,
        registers=CUDA_REGISTERS,
        registers_block=CUDA_REGISTERS_BLOCK,
    )
    return _target(f"cuda-{arch}", "cuda", what, gpu, gib << 30)


def opencl_target(name: str = "opencl", gpu: Gpu | None = None, memory: int = 4 << 30) -> Target:
    """A target of an OpenCL device; without facts, within the least that devices offer."""
    return _target(name, "opencl", "an OpenCL device", gpu or Gpu(), memory)


def _target(name: str, backend: str, what: str, gpu: Gpu, memory: int) -> Target:
    return Target.model_validate(
        {
            "name": name,
            "backend": backend,
            "description": what,
            "threads": 1,
            "vector_bits": 128,
            "cache_bytes": (),
            "memory_bytes": memory,
            "gpu": gpu,
        }
    )
