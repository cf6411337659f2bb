"""``manifest.json`` of a bundle: what it is, what it takes, how it was made, and each file's hash.

Nothing in it depends on when, where or by whom a bundle was made.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from edgekernelbench.compilers.budget import Item
from edgekernelbench.deploy.measured import Measured

VERSION = 1


class _Stored(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class KernelFacts(_Stored):
    """``hash``: SHA-256 of the canonical text, as in records; the text is ``file``."""

    name: str
    hash: str
    file: str


class Parameter(_Stored):
    """One array of the C function, in its order: row-major, aligned to 64 bytes."""

    name: str
    c_name: str
    c_type: str
    dtype: str
    shape: tuple[int, ...]
    bytes: int
    role: Literal["input", "output"]


class Prepared(_Stored):
    """An array within ``constants.bin``: a const input, a packed form of some, or a table."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    role: Literal["const", "packed", "table"]
    offset: int
    bytes: int


class GoldenFacts(_Stored):
    """What the self-test runs on. ``tolerance``: class of the documentation's page."""

    cases: int
    seed: int
    truth: str
    constants: str
    workload: str | None
    tolerance: str
    tolerance_version: int


class Toolchain(_Stored):
    """``llvm``: what made the machine code, None where the kernel is C source; ``c_compiler``: what
    made ``prebuilt/``, None where nothing did; then ``not_prebuilt`` says why."""

    edgekernelbench: str
    tvm: str
    llvm: int | None
    c_compiler: str | None
    not_prebuilt: str = ""


class Bill(_Stored):
    """What the kernel takes of the device. Bytes; see `compilers.base.StaticFacts`.

    Attributes:
        budget: a line for each limit of the target.
        constants_bytes: of ``constants.bin``.
    """

    flops: float
    io_bytes: int
    packed_bytes: int
    workspace_bytes: int
    code_bytes: int | None
    constants_bytes: int
    budget: tuple[Item, ...]


class File(_Stored):
    sha256: str
    bytes: int


class BundleManifest(_Stored):
    """See the module.

    Attributes:
        licence: SPDX names; of what the bundle brings beside the kernel, and of the kernel.
        measured: on the device or elsewhere, by its ``target``; None: not measured.
        files: every file of the bundle but this one, by path.
    """

    version: Literal[1] = VERSION
    kernel: KernelFacts
    function: str
    parameters: tuple[Parameter, ...]
    prepared: tuple[Prepared, ...]
    architecture: str
    target: dict[str, Any]
    golden: GoldenFacts
    toolchain: Toolchain
    licence: dict[str, str]
    measured: Measured | None
    bill: Bill
    files: dict[str, File]
