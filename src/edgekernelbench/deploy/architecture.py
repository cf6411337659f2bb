"""The machines that bundles are made for, by the LLVM triple of a target."""

from __future__ import annotations

import platform
import re
from dataclasses import dataclass

from edgekernelbench.errors import UsageError
from edgekernelbench.targets.model import Target


@dataclass(frozen=True, slots=True)
class Architecture:
    """One kind of machine.

    Attributes:
        name: as people say it.
        machines: what ``uname -m`` prints on one, the usual one first.
        triple: GNU's name; its C compiler is ``TRIPLE-gcc``.
        emulator: runs its programs on other machines.
        pattern: LLVM triples that mean it, as a regular expression.
    """

    name: str
    machines: tuple[str, ...]
    triple: str
    emulator: str
    pattern: str

    @property
    def here(self) -> bool:
        """Whether this machine is one."""
        return platform.machine() in self.machines


ARCHITECTURES = (
    Architecture("x86-64", ("x86_64",), "x86_64-linux-gnu", "qemu-x86_64", r"x86_64-.*linux"),
    Architecture(
        "aarch64", ("aarch64", "arm64"), "aarch64-linux-gnu", "qemu-aarch64",
        r"(aarch64|arm64)-.*linux",
    ),
    Architecture(
        "armv7", ("armv7l", "armv8l"), "arm-linux-gnueabihf", "qemu-arm",
        r"armv7[al]?-.*linux.*eabihf",
    ),
    Architecture("riscv64", ("riscv64",), "riscv64-linux-gnu", "qemu-riscv64", r"riscv64-.*linux"),
)  # fmt: skip


OPENCL = Architecture("opencl", (), "", "", "")
"""Whatever machine has the device: its bundles are built there, from source alone."""


def architecture_of(target: Target) -> Architecture:
    """What a target's machine is.

    Raises:
        UsageError: bundles are not made for it; says for which they are.
    """
    known = ", ".join(a.name for a in ARCHITECTURES)
    if target.backend == "opencl":
        return OPENCL
    if not target.on_cpu:
        raise UsageError(
            f"target {target.name!r}: bundles for the backend {target.backend} are not there yet",
            f"choose an OpenCL device, or a processor: Linux on {known}",
        )
    for architecture in ARCHITECTURES:
        if target.mtriple is None and architecture.here:
            return architecture
        if target.mtriple and re.match(architecture.pattern, target.mtriple):
            return architecture
    machine = target.mtriple or platform.machine()
    raise UsageError(
        f"target {target.name!r}: no bundles are made for {machine}",
        f"they are for Linux on {known} (armv7 with hard floats: armv7l-linux-gnueabihf)",
    )
