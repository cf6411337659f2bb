"""What tuning one loop function came to, as a line of a schedule pack.

A schedule is a trace of the compiler's own steps, so it is valid for one version of it. It applies
to any device of its kind, but it is only as good as the search. On a CPU of another architecture or
vector width, or on a GPU of another architecture, nothing was ever searched: there it is
*transferred*, said to be, and no part of ``best``.
"""

from __future__ import annotations

import importlib.metadata
import platform
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, TypeAdapter

from edgekernelbench.targets.host import host_target
from edgekernelbench.targets.model import Target

Kinship = Literal["own", "kin", "transferred"]
"""What a schedule was tuned for, as the target sees it: the same device, another one for which a
search would look for the same, or neither."""

_KINSHIPS: tuple[Kinship, ...] = ("transferred", "kin", "own")
Identity = tuple[Any, ...]


class _Line(BaseModel):
    """What tuning one loop function for one device came to.

    Attributes:
        function: key of the function (see `compilers.tvm.tuning.graph.key`).
        name: of the function where it was first met, for people.
        workload: for which it was tuned.
        compiler: TVM's version.
        trials: candidates measured.
        wanted: candidates asked for; fewer are measured where there are no others.
        guide: cost model that chose the candidates.
        us: time of the best one in isolation, when it was tuned; None where none ran.
        trace: steps that lead to it; None leaves the function as it is.
        checked: the best one's results were those of the function without a schedule.
        reason: why there is no trace, or what else is to be known.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    version: Literal[1] = 1
    function: str = Field(pattern=r"^[0-9a-f]{16}$")
    name: str
    workload: str
    compiler: str
    trials: int = Field(ge=0)
    wanted: int = Field(ge=0)
    guide: str
    us: float | None = Field(default=None, gt=0)
    trace: list[Any] | None = None
    checked: bool = False
    reason: str = ""

    def kinship(self, target: Target) -> Kinship | None:
        """None where it is of no use at all."""
        raise NotImplementedError

    def merit(self, target: Target) -> tuple[Any, ...]:
        """What is greater is to be preferred."""
        kinship = self.kinship(target)
        rank = -1 if kinship is None else _KINSHIPS.index(kinship)
        return (rank, *self._likeness(target), self.wanted, -(self.us or float("inf")))

    def _likeness(self, target: Target) -> tuple[Any, ...]:
        raise NotImplementedError


class CpuSchedule(_Line):
    """For a CPU.

    Attributes:
        arch, cpu, vector_bits, threads: what it was tuned for; ``cpu`` is LLVM's name with what
            was switched on or off.
        host: LLVM's name of the CPU that it was tuned on.
    """

    arch: str
    cpu: str
    host: str
    vector_bits: int = Field(gt=0)
    threads: int = Field(gt=0)

    @property
    def identity(self) -> Identity:
        return (self.function, self.arch, self.cpu, self.threads, self.compiler)

    @property
    def origin(self) -> str:
        where = "" if self.host == self.cpu else f" on {self.host}"
        return f"{self.arch} {self.cpu}{where}"

    def kinship(self, target: Target) -> Kinship | None:
        if target.backend != "llvm":
            return None
        if self.arch != arch_of(target):
            return "transferred"
        if self.cpu == cpu_of(target):
            return "own"
        return "kin" if self.vector_bits == target.vector_bits else "transferred"

    def _likeness(self, target: Target) -> tuple[Any, ...]:
        return (
            self.threads == target.threads,
            self.arch == arch_of(target),
            -abs(self.vector_bits - target.vector_bits),
        )


class GpuSchedule(_Line):
    """For a device behind CUDA or OpenCL.

    Attributes:
        backend, arch: what it was tuned for; see `gpu_arch`.
        device, driver: what it was tuned on, in the driver's own words.
    """

    backend: Literal["cuda", "opencl"]
    arch: str
    device: str
    driver: str

    @property
    def identity(self) -> Identity:
        return (self.function, self.backend, self.arch, self.device, self.compiler)

    @property
    def origin(self) -> str:
        return self.device if self.arch == self.device else f"{self.arch} ({self.device})"

    def kinship(self, target: Target) -> Kinship | None:
        if self.backend != target.backend:
            return None
        if self.arch != gpu_arch(target):
            return "transferred"
        return "own" if self.device == device_name(target) else "kin"

    def _likeness(self, target: Target) -> tuple[Any, ...]:
        return ()


Schedule = CpuSchedule | GpuSchedule


def _kind(line: Any) -> str:
    return "gpu" if isinstance(line, dict) and "backend" in line else "cpu"


_SCHEDULES: TypeAdapter[Schedule] = TypeAdapter(
    Annotated[
        Annotated[CpuSchedule, Tag("cpu")] | Annotated[GpuSchedule, Tag("gpu")],
        Discriminator(_kind),
    ]
)


def parse_schedule(line: bytes) -> Schedule:
    """A line of a pack.

    Raises:
        ValueError, RecursionError: it is none.
    """
    return _SCHEDULES.validate_json(line)


# ---------------------------------------------------------------- machines
def arch_of(target: Target) -> str:
    """The instruction set of a CPU, as the first part of a target triple."""
    return target.mtriple.split("-")[0] if target.mtriple else platform.machine()


def cpu_of(target: Target) -> str:
    """LLVM's name of the CPU and the features that the profile changes."""
    return ",".join((target.mcpu or "generic", *target.mattr))


def gpu_arch(target: Target) -> str:
    """NVIDIA's name of the architecture (``sm_90``). OpenCL has no word for it: there it is the
    device's name."""
    named = None if target.gpu is None else target.gpu.arch
    return named or device_name(target)


def device_name(target: Target) -> str:
    """As its driver calls it; empty where the target has no device."""
    return "" if target.device is None else target.device.name


def compiler_version() -> str:
    return importlib.metadata.version("apache-tvm")


def identity(function: str, target: Target) -> Identity:
    """Of the schedule for a function, by its key, on a target."""
    if target.backend == "llvm":
        where: Identity = (arch_of(target), cpu_of(target), target.threads)
    else:
        where = (target.backend, gpu_arch(target), device_name(target))
    return (function, *where, compiler_version())


def schedule_for(target: Target, **found: Any) -> Schedule:
    """What a search on a target found, with what it was searched on.

    Args:
        found: the fields that all schedules have.
    """
    if target.device is not None:
        return GpuSchedule(
            backend="cuda" if target.backend == "cuda" else "opencl",
            arch=gpu_arch(target),
            device=device_name(target),
            driver=target.device.driver,
            **found,
        )
    return CpuSchedule(
        arch=arch_of(target),
        cpu=cpu_of(target),
        host=host_target().mcpu or "generic",
        vector_bits=target.vector_bits,
        threads=target.threads,
        **found,
    )
