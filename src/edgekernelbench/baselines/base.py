"""What a baseline is: the program a deployer would otherwise ship, built once, run beside ours.

A baseline is built in a limited child process from `Materials` alone, into a folder that is cached
by content. What it leaves is a `Recipe`: which runner loads the folder, and how. Timings are never
cached. In the run child a `Runner` binds a recipe to arrays and calls it.

The constants of a task are redrawn between evaluations, so a build must not bake their values in:
`Materials.twin` carries *some* draw of them as initializers, to be turned into arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from pydantic import BaseModel, ConfigDict

from edgekernelbench.ir.dtypes import DType
from edgekernelbench.targets.model import Target

RunnerKind = Literal["tvm-library", "tvm-plan", "relax", "ort", "device-kernel", "torch"]


class Port(BaseModel):
    """One array of the task's interface, in the header's order. ``shape`` () is one element."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    dtype: DType
    shape: tuple[int, ...]
    role: Literal["input", "const", "output"]


class Materials(BaseModel):
    """A task as a baseline sees it: plain data, so that it can be handed to a child process.

    Attributes:
        workload: its name, for messages.
        header: the kernel header that the task fixes.
        ports: inputs, constants and outputs with their shapes.
        canonical: text of the canonical kernel program, when there is one.
        twin: ONNX model, serialized; None where ONNX cannot say the task. Graph inputs and
            outputs are named like the ports; initializers hold one draw of the constants, under
            the port's name where used as it is, under ``const.N`` where rearranged. Another
            draw's twin differs in the values of initializers only.
        fixed: initializers that no draw changes (axes, shapes, scales of the definition); they may
            be baked in.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    workload: str
    header: str
    ports: tuple[Port, ...]
    canonical: str | None = None
    twin: bytes | None = None
    fixed: tuple[str, ...] = ()


OTHER = "other"
"""Folder of a recipe's second build."""


class Recipe(BaseModel):
    """How to run what was built; stored as ``recipe.json`` in the folder.

    Attributes:
        baseline: name of the baseline.
        kind: which runner loads it.
        route: what it was built from, for the record (``ONNX twin``, ``canonical program``).
        notes: for the record, such as parts of the twin that took another way.
        wants_twin: `Runner.bind` is to be given the twin of the constants it is given.
        scored: False takes this build out of ``best`` though the baseline may be it.
        options: for the runner alone.
        other: another build of the same baseline, in the folder ``OTHER`` beside this one, that
            takes its place when this one's result turns out wrong.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    version: Literal[1] = 1
    baseline: str
    kind: RunnerKind
    route: str
    notes: tuple[str, ...] = ()
    wants_twin: bool = False
    scored: bool | None = None
    options: dict[str, Any] = {}
    other: Recipe | None = None


@dataclass(frozen=True, slots=True)
class Unavailable:
    """Why a baseline cannot be had for a task on a target, in one line."""

    reason: str


class Baseline(Protocol):
    """One kind of baseline. Stateless.

    Attributes:
        name: key in the record.
        scored: whether it may be ``best``.
        version: part of the cache key; raise it when a build would come out differently.
    """

    name: str
    scored: bool
    version: int

    def available(self, materials: Materials, target: Target) -> str | None:
        """A reason why the task has no such baseline, or None. Cheap; called in the parent."""
        ...

    def prepare(self, materials: Materials, target: Target, folder: Path) -> Recipe | Unavailable:
        """Builds into an existing empty folder; runs in a limited child that may be killed.

        Expected failures (an operator that the importer lacks) are `Unavailable`; whatever is
        raised is recorded as a failed baseline.
        """
        ...


@runtime_checkable
class ReadsFiles(Protocol):
    """A baseline whose builds depend on files of the user's: what they hold is part of the cache
    key, so that a build is made anew when they change."""

    def files(self) -> tuple[Path, ...]: ...


class Runner(Protocol):
    """A built program in the run child, bound to arrays that stay where they are.

    Life: made from a folder and a recipe's options; `bind` once per draw of the constants (anew
    with other arrays when they are redrawn); then the bound call any number of times.
    """

    def bind(
        self,
        inputs: Mapping[str, np.ndarray],
        consts: Mapping[str, np.ndarray],
        outputs: Mapping[str, np.ndarray],
        twin: bytes | None,
    ) -> Callable[[], None]:
        """Prepares everything that happens before timing (prepack, session, device copies).

        The arrays are C-contiguous, 64-byte aligned, of the ports' dtypes and shapes, and outlive
        the binding. ``twin`` is the task's ONNX model with these ``consts`` as initializers.
        Returns the function that is timed: it reads ``inputs`` as they are at that moment and has
        written ``outputs`` when it returns. It should do nothing else.
        """
        ...


class DeviceTimes(Protocol):
    """Nanoseconds of several calls together: by the device's clock from the first start to the
    last end, by the same clock in the kernels alone (None where it does not tell them apart), and
    by the host's clock."""

    @property
    def span_ns(self) -> int: ...
    @property
    def kernels_ns(self) -> int | None: ...
    @property
    def host_ns(self) -> int: ...


class DeviceCall(Protocol):
    """A program whose arrays lie on a device, bound to a piece of its memory that mirrors the
    host's: inputs and outputs, and guard bytes between them."""

    def upload(self) -> None:
        """Copies every array to the device, but no guard bytes."""
        ...

    def flush(self, size: int) -> None:
        """Writes ``size`` bytes of other memory of the device."""
        ...

    def untimed(self, count: int) -> None: ...

    def timed(self, count: int) -> DeviceTimes: ...

    def download(self, into: np.ndarray) -> None:
        """Copies the whole piece of memory, guard bytes included, back."""
        ...


class DeviceRunner(Protocol):
    """What a `Runner` is for programs that run on a device."""

    def bind(
        self,
        host: np.ndarray,
        spans: Mapping[str, tuple[int, int]],
        consts: Mapping[str, np.ndarray],
        twin: bytes | None,
    ) -> DeviceCall:
        """Prepares everything that happens before timing.

        ``host`` are the bytes of inputs, outputs and guards; ``spans`` gives offset and size of
        each array in it.
        """
        ...
