"""The compiler protocol: ``compile(kernel, target) -> BuildResult``, outcomes as values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from pydantic import BaseModel, ConfigDict

from edgekernelbench.compilers.launch import LaunchPlan
from edgekernelbench.ir.core import Program
from edgekernelbench.ir.diagnostics import Diagnostic
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.ir.surface import Kernel
from edgekernelbench.targets.model import Target

Role = Literal["input", "const", "packed", "table", "output"]


class _Stored(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Argument(_Stored):
    """One array of the artifact's interface."""

    name: str
    dtype: DType
    shape: tuple[int, ...]
    role: Role

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.bytes


class KernelBill(_Stored):
    """What one device kernel takes. What only an assembler knows is None where there is none.

    Attributes:
        registers: of a thread.
        shared_bytes: shared memory of a block, allocated statically.
        spilled_bytes: registers of a thread that are kept in memory instead.
        stack_bytes: memory of a thread beside its registers, spills included.
    """

    name: str
    registers: int | None = None
    shared_bytes: int
    spilled_bytes: int | None = None
    stack_bytes: int | None = None


class StaticFacts(_Stored):
    """The bill of a compiled kernel that needs no run. Bytes; operations count multiply-add as 2.

    Attributes:
        flops: operations of one call as the loop program performs them.
        io_bytes: declared inputs and outputs, once each.
        packed_bytes: prepacked copies of constants that live beside (or instead of) the originals.
        workspace_bytes: temporary memory of one call.
        code_bytes: size of the executable code section, when the compiler can tell.
        compile_seconds: lowering, code generation and linking.
        nest: readable sketch of the final loop nest.
        kernels: of the device.
    """

    flops: float
    io_bytes: int
    packed_bytes: int
    workspace_bytes: int
    code_bytes: int | None
    compile_seconds: float
    nest: str
    kernels: tuple[KernelBill, ...] = ()


class Manifest(_Stored):
    """Says how to call an artifact: stored as ``manifest.json`` beside ``library``, which is a
    shared library, or source or machine code of device kernels, and then ``plans`` say how to
    launch them.

    ``main_args`` and ``prepack_args`` name entries of ``arguments`` in call order; tables are
    passed like constants, their values under ``tables`` (flat, row-major).
    """

    version: Literal[1] = 1
    kernel: str
    target: str
    library: str
    arguments: tuple[Argument, ...]
    main_args: tuple[str, ...]
    prepack_args: tuple[str, ...] = ()
    tables: dict[str, tuple[int | float, ...]] = {}
    plans: dict[Literal["main", "prepack"], LaunchPlan] = {}
    facts: StaticFacts


@dataclass(frozen=True, slots=True)
class Artifact:
    """A folder with a library and its `Manifest`."""

    folder: Path
    manifest: Manifest


@dataclass(frozen=True, slots=True)
class BuildResult:
    """Exactly one of ``artifact`` and error diagnostics is there."""

    artifact: Artifact | None
    diagnostics: tuple[Diagnostic, ...] = ()


class Compiler(Protocol):
    """A toolchain. ``compile`` may run long: callers put it in a limited child process."""

    name: str

    def supports(self, target: Target) -> bool:
        """Whether this toolchain builds for the target's backend."""
        ...

    def compile(
        self, kernel: Kernel, program: Program, target: Target, folder: Path
    ) -> BuildResult:
        """Builds a verified program with the layers of ``kernel`` that apply to ``target``.

        Args:
            kernel: the file as written; its holes have been filled.
            program: ``kernel`` elaborated and verified, on the sizes to build for.
            target: the device profile.
            folder: an existing empty folder that receives library and manifest.
        """
        ...
