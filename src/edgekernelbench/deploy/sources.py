"""The C that is written for one kernel: header, wrapper, constants and the self-test's table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from edgekernelbench.compilers.base import Argument
from edgekernelbench.deploy.golden import Golden, OutputRule
from edgekernelbench.deploy.manifest import Parameter, Prepared
from edgekernelbench.ir.dtypes import DType

_C_TYPES = {
    DType.F16: "uint16_t",
    DType.F32: "float",
    DType.F64: "double",
    DType.S8: "int8_t",
    DType.U8: "uint8_t",
    DType.S16: "int16_t",
    DType.U16: "uint16_t",
    DType.S32: "int32_t",
    DType.U32: "uint32_t",
    DType.S64: "int64_t",
    DType.BOOL: "uint8_t",
}
_MEANING = {DType.F16: ", bits of an IEEE 754 half", DType.BOOL: ", 0 or 1"}
# Of C and C++, and what compilers for Linux define beside them.
_KEYWORDS = """
alignas alignof and asm auto bool break case catch char class compl concept const continue decltype
default delete do double else enum explicit export extern false float for friend goto if inline int
linux long mutable namespace new not nullptr operator or private protected public register requires
restrict return short signed sizeof static struct switch template this throw true try typedef typeid
typename typeof union unix unsigned using virtual void volatile while xor
"""
_RESERVED = frozenset(_KEYWORDS.split())

MARK = "/* Made by ekb deploy. SPDX-License-Identifier: Apache-2.0 */\n"


def symbol_of(kernel: str) -> str:
    """Names the machine code of a kernel, so that several bundles fit into one program."""
    return f"ekb_{kernel}"


def function_of(kernel: str) -> str:
    """The C function of a kernel."""
    return f"kernel_{kernel}"


def parameters_of(arguments: Sequence[Argument]) -> tuple[Parameter, ...]:
    """The parameters of the C function: inputs and outputs, without what is prepared."""
    return tuple(
        Parameter(
            name=a.name,
            c_name=_c_name(a.name),
            c_type=_C_TYPES[a.dtype],
            dtype=a.dtype.value,
            shape=a.shape,
            bytes=a.bytes,
            role="output" if a.role == "output" else "input",
        )
        for a in arguments
        if a.role in ("input", "output")
    )


def _c_name(name: str) -> str:
    """A parameter may have no name that C, C++ or their libraries' macros use."""
    reserved = name in _RESERVED or name.startswith("_") or re.fullmatch(r"[A-Z][A-Z0-9_]+", name)
    return f"arg_{name}" if reserved else name


@dataclass(frozen=True, slots=True)
class Sources:
    """Writes the files of one kernel.

    Attributes:
        kernel: its name.
        parameters: of the C function.
        prepared: what lies in the constants.
        arguments: of the machine code, in call order: names of both.
        target: its name and processor, for people.
    """

    kernel: str
    parameters: tuple[Parameter, ...]
    prepared: tuple[Prepared, ...]
    arguments: tuple[str, ...]
    target: str

    # ------------------------------------------------------------ the function
    def prototype(self) -> str:
        words = []
        for p in self.parameters:
            const = "const " if p.role == "input" else ""
            words.append(f"{const}{p.c_type} *{p.c_name}")
        return f"int {function_of(self.kernel)}({', '.join(words) or 'void'})"

    def header(self) -> str:
        guard = f"EKB_{self.kernel.upper()}_H"
        lines = [f" * {_described(p)}" for p in self.parameters]
        constants = ", ".join(p.name for p in self.prepared) or "none"
        return (
            f"{MARK}/* {self.kernel}, built for {self.target}.\n *\n"
            + "\n".join(lines)
            + "\n *\n * Arrays are dense and row-major: the last index runs fastest. Each begins at"
            "\n * a multiple of 64 bytes (ekb_alloc gives such memory), and an output shares no"
            "\n * memory with another argument. Any thread may call it, several at a time.\n"
            f" * Built in, prepared: {constants}.\n"
            " * Returns EKB_OK, or what ekb_runtime.h says; ekb_error() has the reason. */\n"
            f"#ifndef {guard}\n#define {guard}\n\n#include <stdint.h>\n\n"
            '#include "ekb_runtime.h"\n\n#ifdef __cplusplus\nextern "C" {\n#endif\n\n'
            f"{self.prototype()};\n\n#ifdef __cplusplus\n}}\n#endif\n#endif\n"
        )

    def wrapper(self) -> str:
        symbol = symbol_of(self.kernel)
        given = {p.name: p for p in self.parameters}
        built_in = {p.name: p for p in self.prepared}
        shapes, rows, data = [], [], []
        for k, name in enumerate(self.arguments):
            entry = given.get(name) or built_in[name]
            shape = entry.shape or (1,)
            shapes.append(f"static const int64_t shape_{k}[] = {{{_listed(shape)}}};")
            rows.append(f"  {{{_row(entry, k, len(shape))}}},")
            if isinstance(entry, Parameter):
                data.append(entry.c_name)
            else:
                data.append(f"{symbol}_constants + {entry.offset}")
        declared = f"extern const unsigned char {symbol}_constants[];\n" if built_in else ""
        code = "void *, const struct ekb_any *, int32_t, struct ekb_any *"
        return (
            f'{MARK}#include "{self.kernel}.h"\n\n{declared}'
            f"int __tvm_ffi_{symbol}({code});\n\n"
            + "\n".join(shapes)
            + "\nstatic const ekb_parameter parameters[] = {\n"
            + "\n".join(rows)
            + f"\n}};\n\n{self.prototype()} {{\n"
            f"  const void *const data[] = {{{', '.join(data)}}};\n"
            f"  return ekb_call(__tvm_ffi_{symbol}, parameters, data, {len(self.arguments)});\n}}\n"
        )

    def constants(self) -> str:
        """Assembler that takes ``constants.bin`` in; any GNU-like assembler for ELF does."""
        name = f"{symbol_of(self.kernel)}_constants"
        return (
            f'{MARK}  .section .rodata.{name}, "a", %progbits\n  .balign 64\n  .globl {name}\n'
            f"  .type {name}, %object\n{name}:\n"
            f'  .incbin "constants.bin"\n  .size {name}, . - {name}\n'
            '  .section .note.GNU-stack, "", %progbits\n'
        )

    # ------------------------------------------------------------ the self-test
    def golden(self, golden: Golden, rules: dict[str, OutputRule]) -> str:
        inputs = [p for p in self.parameters if p.role == "input"]
        outputs = [p for p in self.parameters if p.role == "output"]
        places = {p.name: f"inputs[{k}]" for k, p in enumerate(inputs)}
        places |= {p.name: f"outputs[{k}]" for k, p in enumerate(outputs)}
        passed = ", ".join(places[p.name] for p in self.parameters)
        atol = [
            f"static const double atol_{k}[] = {{{_listed(rules[p.name].atol)}}};"
            for k, p in enumerate(outputs)
        ]
        return (
            f'{MARK}#include "{self.kernel}.h"\n#include "selftest.h"\n\n'
            f'const char st_kernel[] = "{self.kernel}", st_cpu[] = "{_quoted(self.target)}";\n'
            f"const int st_cases = {len(golden.cases)};\n"
            f"const int st_input_count = {len(inputs)}, st_output_count = {len(outputs)};\n"
            # One more than there are: C knows no empty array.
            f"const st_input st_inputs[{len(inputs) + 1}] = {{\n"
            + "".join(f'  {{"{p.name}", {p.bytes}}},\n' for p in inputs)
            + "};\n"
            + "\n".join(atol)
            + "\nconst st_output st_outputs[] = {\n"
            + "".join(f"  {_rule(p, k, rules[p.name])},\n" for k, p in enumerate(outputs))
            + "};\n\nint st_call(void *const *inputs, void *const *outputs) {\n  (void)inputs;\n"
            f"  return {function_of(self.kernel)}({passed});\n}}\n"
        )


def _described(parameter: Parameter) -> str:
    dtype = DType(parameter.dtype)
    return (
        f"{parameter.c_name}: {parameter.role}, {dtype.value}{list(parameter.shape)}"
        f"{_MEANING.get(dtype, '')}, {parameter.bytes} bytes"
    )


def _row(entry: Parameter | Prepared, number: int, dimensions: int) -> str:
    dtype = DType(entry.dtype)
    kind = "EKB_FLOAT" if dtype.is_float else "EKB_INT" if dtype.is_signed else "EKB_UINT"
    output = int(entry.role == "output")
    return (
        f'"{entry.name}", shape_{number}, {dimensions}, {kind}, {8 * dtype.bytes}, {output}, '
        f"{entry.bytes}"
    )


def _rule(parameter: Parameter, number: int, rule: OutputRule) -> str:
    dtype = DType(parameter.dtype)
    cosine = -2.0 if rule.cosine is None else rule.cosine
    count = parameter.bytes // dtype.bytes
    return (
        f'{{"{parameter.name}", ST_{dtype.value.upper()}, {count}, {rule.rtol!r}, atol_{number}, '
        f"{rule.matched!r}, {rule.cap!r}, {cosine!r}, {rule.lsb}}}"
    )


def _listed(values: Sequence[int | float]) -> str:
    return ", ".join(repr(value) for value in values)


def _quoted(text: str) -> str:
    return re.sub(r'[\\"?]|[^ -~]', " ", text)
