"""The C that is written for a kernel of an OpenCL device: its buffers and launches as tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from edgekernelbench.compilers.base import Manifest
from edgekernelbench.compilers.launch import Call, LaunchPlan, calls
from edgekernelbench.deploy.sources import MARK, Sources, symbol_of

_SCALAR_BYTES = 8


def program_file(kernel: str) -> str:
    """Where the device's source lies, in ``src``."""
    return f"{kernel}.cl"


def program_assembler(kernel: str) -> str:
    """Assembler that takes the device's source in."""
    name = f"{symbol_of(kernel)}_program"
    return (
        f'{MARK}  .section .rodata.{name}, "a", %progbits\n  .globl {name}, {name}_end\n'
        f"  .type {name}, %object\n{name}:\n"
        f'  .incbin "src/{program_file(kernel)}"\n{name}_end:\n  .byte 0\n'
        f"  .size {name}, . - {name}\n"
        '  .section .note.GNU-stack, "", %progbits\n'
    )


def wrapper(sources: Sources, manifest: Manifest) -> str:
    """The C function of the kernel, in place of the one that calls machine code.

    Args:
        manifest: of the artifact, with its plans.
    """
    tables = _Tables()
    for p in sources.parameters:
        tables.add(p.name, "EKB_CL_INPUT" if p.role == "input" else "EKB_CL_OUTPUT", p.bytes)
    for prepared in sources.prepared:
        tables.add(prepared.name, "EKB_CL_CONSTANT", prepared.bytes, prepared.offset)
    for argument in manifest.arguments:
        if argument.role == "packed":
            tables.add(argument.name, "EKB_CL_INNER", argument.bytes)
    once = tables.launches(manifest.plans["prepack"]) if "prepack" in manifest.plans else []
    launches = tables.launches(manifest.plans["main"])
    symbol, built_in = symbol_of(sources.kernel), bool(sources.prepared)
    constants = f"{symbol}_constants" if built_in else "0"
    declared = f"extern const unsigned char {symbol}_constants[];\n" if built_in else ""
    rows = "".join(
        f'  {{"{p.name}", 0, 0, 0, 0, {int(p.role == "output")}, {p.bytes}}},\n'
        for p in sources.parameters
    )
    data = ", ".join(p.c_name for p in sources.parameters)
    return (
        f'{MARK}#include "{sources.kernel}.h"\n#include "ekb_opencl.h"\n\n{declared}'
        f"extern const char {symbol}_program[], {symbol}_program_end[];\n\n"
        f"static const ekb_parameter parameters[] = {{\n{rows}}};\n"
        f"{_array('ekb_cl_buffer', 'buffers', tables.buffers)}"
        f"{_array('ekb_cl_argument', 'arguments', tables.arguments)}"
        f"{_array('ekb_cl_launch', 'once', once)}"
        f"{_array('ekb_cl_launch', 'launches', launches)}"
        "static const ekb_cl_kernel kernel = {\n"
        f"  {symbol}_program, {symbol}_program_end, {constants}, buffers, {len(tables.buffers)},\n"
        f"  {len(sources.parameters)}, parameters, arguments, once, {len(once)}, launches,\n"
        f"  {len(launches)}}};\n\n{sources.prototype()} {{\n"
        f"  const void *const data[] = {{{data}}};\n"
        f"  return ekb_cl_call(&kernel, data);\n}}\n"
    )


def packed_apart(manifest: Manifest) -> Iterator[str]:
    """Names of what lies in the constants as it is: const inputs and tables. What is packed is made
    of them on the device, at the first call."""
    read = {*manifest.main_args, *manifest.prepack_args}
    for argument in manifest.arguments:
        if argument.role in ("const", "table") and argument.name in read:
            yield argument.name


@dataclass
class _Tables:
    """Rows of C: buffers and arguments, and the numbers of buffers by name."""

    buffers: list[str] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)

    def add(self, name: str, role: str, size: int, offset: int = 0) -> None:
        self.numbers[name] = len(self.buffers)
        self.buffers.append(f"{role}, {max(1, size)}, {offset}")

    def launches(self, plan: LaunchPlan) -> list[str]:
        """A row for each launch of a call. Workspaces belong to the plan alone."""
        shared = dict(self.numbers)
        for space in plan.workspaces:
            self.add(space.name, "EKB_CL_INNER", space.bytes)
        rows = [self._launch(call) for call in calls(plan)]
        self.numbers = shared
        return rows

    def _launch(self, call: Call) -> str:
        first = len(self.arguments)
        for argument in call.arguments:
            if isinstance(argument, str):
                self.arguments.append(f"{self.numbers[argument]}, 0, 0")
            else:
                raw = np.dtype(argument[0]).type(argument[1]).tobytes()
                bits = int.from_bytes(raw.ljust(_SCALAR_BYTES, b"\0"), "little")
                self.arguments.append(f"-1, {len(raw)}, {bits}u")
        items = ", ".join(
            str(groups * size) for groups, size in zip(call.groups, call.group_size, strict=True)
        )
        group = ", ".join(map(str, call.group_size))
        count = len(call.arguments)
        return f'"{call.kernel}", {first}, {count}, {{{items}}}, {{{group}}}'


def _array(kind: str, name: str, rows: list[str]) -> str:
    """A table; C knows no empty array."""
    lines = "".join(f"  {{{row}}},\n" for row in rows or ["0"])
    return f"static const {kind} {name}[] = {{\n{lines}}};\n"
