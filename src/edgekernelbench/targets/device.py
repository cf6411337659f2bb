"""What drivers say of a device, and how one is asked for by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

POCL = "Portable Computing Language"
"""Name of PoCL's platform: OpenCL on this host's CPU, the default."""

CHECKER = "Oclgrind"
"""Name of the checker's platform: it simulates kernels and is no device to measure on."""


class DeviceChoice(BaseModel):
    """Which device of this machine: platform and device by their own names, and a number among
    equal ones."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    platform: str
    name: str
    index: int = 0


class OpenClDevice(DeviceChoice):
    """The driver's own words. Sizes are bytes, ``clock_mhz`` and ``timer_ns`` as it claims.

    Attributes:
        driver: version of the driver.
        version: of OpenCL that the device supports.
        kind: what kind of processor it says it is.
        compute_units: cores, or multiprocessors.
        global_bytes: memory of the device.
        alloc_bytes: the largest single buffer.
        cache_bytes: of the last level; 0 when it does not tell.
        local_bytes: local memory of one work group.
        work_group: largest number of work items in a group.
        work_items: largest extents of a group.
        align_bytes: where a buffer within another may begin.
        timer_ns: resolution of its profiling clock.
        vector_floats: f32 elements of the preferred vector.
    """

    vendor: str
    driver: str
    version: str
    kind: Literal["cpu", "gpu", "accelerator", "other"]
    compute_units: int
    clock_mhz: int
    global_bytes: int
    alloc_bytes: int
    cache_bytes: int
    local_bytes: int
    work_group: int
    work_items: tuple[int, int, int]
    align_bytes: int
    timer_ns: int
    vector_floats: int
    extensions: tuple[str, ...]

    @property
    def choice(self) -> DeviceChoice:
        return DeviceChoice(platform=self.platform, name=self.name, index=self.index)

    @property
    def is_host_cpu(self) -> bool:
        """Whether kernels run on the cores and in the memory of this host."""
        return self.kind == "cpu"


class CudaChoice(BaseModel):
    """Which NVIDIA device of this machine, by the name that no other has."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    uuid: str


class CudaDevice(CudaChoice):
    """The CUDA driver's own words. Sizes are bytes, clocks as it claims (0 where it does not tell).

    Attributes:
        driver: version of CUDA that the driver supports.
        arch: NVIDIA's name of the architecture (``sm_90``).
        units: multiprocessors.
        l2_bytes: of the second-level cache, the last one.
        shared_bytes: shared memory that a block may allocate statically.
        shared_optin_bytes: the same in all, where its launch asks for it.
        max_threads: of one block; ``block`` its largest extents, ``grid`` those of a grid.
        integrated: whether it shares its memory with the host's processor.
    """

    name: str
    driver: str
    arch: str
    units: int
    clock_mhz: int
    memory_clock_mhz: int
    memory_bytes: int
    l2_bytes: int
    shared_bytes: int
    shared_optin_bytes: int
    max_threads: int
    block: tuple[int, int, int]
    grid: tuple[int, int, int]
    warp: int
    integrated: bool

    @property
    def choice(self) -> CudaChoice:
        return CudaChoice(uuid=self.uuid)

    @property
    def align_bytes(self) -> int:
        """Where an array within a buffer may begin: at what the allocator itself keeps to."""
        return 256

    @property
    def is_host_cpu(self) -> bool:
        """Whether kernels run on the cores of this host: never."""
        return False


Choice = DeviceChoice | CudaChoice
Device = OpenClDevice | CudaDevice


def chosen(dumped: Mapping[str, Any]) -> Choice:
    """The choice of a device from its JSON form.

    Raises:
        ValueError: it is none.
    """
    kind = CudaChoice if "uuid" in dumped else DeviceChoice
    return kind.model_validate(dumped)
