"""The kernel header of a workload, generated here and nowhere else."""

from __future__ import annotations

import re
from importlib import resources
from typing import TYPE_CHECKING

from edgekernelbench.suite.model import TensorDecl

if TYPE_CHECKING:
    from edgekernelbench.suite.model import Workload


def kernel_header(workload: Workload) -> str:
    """``kernel name[sizes](inputs) -> (outputs)``.

    Bindings come first, in the order of the table, then derived sizes as formulas of them.
    """
    definition = workload.definition
    sizes = [f"{name}={value!r}" for name, value in workload.bindings.items()]
    sizes += [f"{name}={formula}" for name, formula in definition.derived]
    inputs = ", ".join(_param(workload, decl) for decl in definition.inputs)
    outputs = ", ".join(_param(workload, decl) for decl in definition.outputs)
    bracketed = f"[{', '.join(sizes)}]" if sizes else ""
    return f"kernel {definition.id}{bracketed}({inputs}) -> ({outputs})"


def _param(workload: Workload, decl: TensorDecl) -> str:
    const = "const " if decl.const else ""
    return f"{decl.name}: {const}{decl.dtype or workload.float_dtype}[{', '.join(decl.dims)}]"


def canonical_kernel(workload: Workload) -> str:
    """The canonical program of the pattern with this workload's header in place.

    Raises:
        FileNotFoundError: there is no such program.
        ValueError: the program's header declares other tensors than the definition.
    """
    if workload.definition.origin:
        from edgekernelbench.suite.own.code import canonical_file

        return replace_header(canonical_file(workload.definition).read_text("utf-8"), workload)
    file = resources.files("edgekernelbench.suite") / "canonical" / f"{workload.pattern}.ekir"
    return replace_header(file.read_text(encoding="utf-8"), workload)


def replace_header(text: str, workload: Workload) -> str:
    """``text`` with the header of its kernel replaced by the workload's; all else is kept."""
    found = re.search(r"\bkernel\b[^{]*(?=\{)", _blank_comments(text))
    if found is None:
        raise ValueError(f"no kernel header in the canonical program of {workload.pattern}")
    declared = re.findall(r"(\w+)\s*:\s*(?:const\s+)?[fsub]\w*\s*\[", found.group())
    definition = workload.definition
    expected = [decl.name for decl in (*definition.inputs, *definition.outputs)]
    if declared != expected:
        raise ValueError(
            f"the canonical program of {workload.pattern} declares {declared}, not {expected}"
        )
    return f"{text[: found.start()]}{workload.header()} {text[found.end() :]}"


def _blank_comments(text: str) -> str:
    """The text with comments overwritten by blanks, so that offsets stay."""
    return re.sub(r"#[^\n]*", lambda match: " " * len(match.group()), text)
