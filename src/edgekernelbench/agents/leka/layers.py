"""A kernel's layers as texts of their own, and patches that replace one and leave the others."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Literal

from edgekernelbench.analysis.report import told
from edgekernelbench.ir import surface as s
from edgekernelbench.ir.parse import parse
from edgekernelbench.ir.printer import print_kernel
from edgekernelbench.targets.model import Target

Layer = Literal["compute", "schedule", "memory"]
_COMPUTE = re.compile(r"^[ \t]*compute\s*\{", re.MULTILINE)
LAYERS: tuple[Layer, ...] = ("compute", "schedule", "memory")


@dataclass(frozen=True, slots=True)
class Patch:
    """A whole layer in place of the present one.

    Attributes:
        text: ``compute { ... }`` behind the definitions that it needs, ``schedule for cpu { ... }``
            or ``memory for cpu { ... }``. Empty: the layer goes away, and default rules take over.
        reason: why, in its author's words.
    """

    layer: Layer
    text: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Refused:
    """A patch that makes no kernel: what is wrong, as its author reads it."""

    told: str


def layer_text(kernel: s.Kernel, layer: Layer, target: Target) -> str:
    """The layer as it applies to a target, as a patch would say it; empty where there is none."""
    if layer == "compute":
        bare = print_kernel(replace(kernel, schedules=(), memories=()))
        header = _head(kernel)
        prelude, _, rest = bare.partition(header)
        block = _undented(rest.rstrip().removesuffix("}").strip("\n"))
        return f"{prelude}{block}".strip()
    kept = _layers(kernel, layer, target, applies=True)[-1:]
    if not kept:
        return ""
    only = replace(kernel, schedules=(), memories=())
    field = "schedules" if layer == "schedule" else "memories"
    whole = print_kernel(replace(only, **{field: kept}))
    rest = whole[len(print_kernel(only).rstrip().removesuffix("}").rstrip()) :]
    return _undented(rest.rstrip().removesuffix("}").strip("\n")).strip()


def patched(kernel: s.Kernel, patch: Patch, target: Target) -> s.Kernel | Refused:
    """The kernel with one layer exchanged.

    A schedule or memory layer is one for the target's backend or its class; layers for other
    targets stay. Where the compute layer is exchanged the other two stay as they are: whether they
    still fit is for the lowering to say.
    """
    if patch.layer == "compute":
        return _with_compute(kernel, patch)
    field = "schedules" if patch.layer == "schedule" else "memories"
    frozen = replace(kernel, **{field: _layers(kernel, patch.layer, target, applies=False)})
    if not patch.text.strip():
        return frozen
    body = print_kernel(frozen).rstrip().removesuffix("}")
    parsed = _parsed(f"{body}\n{patch.text}\n}}\n")
    if isinstance(parsed, Refused):
        return parsed
    new = getattr(parsed, field)
    if replace(parsed, **{field: ()}) != replace(frozen, **{field: ()}):
        return Refused(f"the patch says more than the {patch.layer} layer; give that layer alone")
    names = [layer.target for layer in new if layer not in getattr(frozen, field)]
    wrong = [name for name in names if name not in target.section_names]
    if wrong or len(names) != 1:
        said = ", ".join(names) or "nothing"
        wanted = f"`{patch.layer} for {target.section_names[1]} {{ ... }}`"
        return Refused(f"the patch is for {said}; this target takes one block {wanted}")
    (made,) = (layer for layer in new if layer.target == names[0])
    return replace(frozen, **{field: _in_place(getattr(kernel, field), made, target)})


def _in_place(layers: tuple[Any, ...], new: Any, target: Target) -> tuple[Any, ...]:
    """The new layer where those stood that it replaces; at the end if there were none."""
    names = target.section_names
    at = next((n for n, old in enumerate(layers) if old.target in names), len(layers))
    kept = [old for old in layers[at:] if old.target not in names]
    return (*layers[:at], new, *kept)


def _with_compute(kernel: s.Kernel, patch: Patch) -> s.Kernel | Refused:
    found = _COMPUTE.search(patch.text)  # a definition's name or comment may have the word, too
    block = len(patch.text) if found is None else found.start()
    bare = replace(kernel, prelude=(), schedules=(), memories=())
    header = _head(bare)
    parsed = _parsed(f"{patch.text[:block]}\n{header}{patch.text[block:]}\n}}\n")
    if isinstance(parsed, Refused):
        return parsed
    if parsed.schedules or parsed.memories:
        return Refused("the patch says more than the compute layer; give that layer alone")
    return replace(parsed, schedules=kernel.schedules, memories=kernel.memories)


def _head(kernel: s.Kernel) -> str:
    """``kernel NAME[...](...) -> (...) {`` and the end of the line."""
    bare = replace(kernel, prelude=(), schedules=(), memories=())
    text = print_kernel(bare)
    return text[: text.index("compute {")].rstrip(" ")


def _layers(kernel: s.Kernel, layer: Layer, target: Target, applies: bool) -> tuple[Any, ...]:
    """The layers of a kind that a target takes, the most specific last; or those that it does not
    take."""
    found = kernel.schedules if layer == "schedule" else kernel.memories
    names = target.section_names
    if not applies:
        return tuple(one for one in found if one.target not in names)
    order = {name: -at for at, name in enumerate(names)}
    mine = [one for one in found if one.target in names]
    return tuple(sorted(mine, key=lambda one: order[one.target]))


def _parsed(text: str) -> s.Kernel | Refused:
    result = parse(text)
    if result.kernel is None or any(d.severity == "error" for d in result.diagnostics):
        return Refused(told(result.diagnostics, text))
    return result.kernel


def _undented(text: str) -> str:
    lines = text.split("\n")
    deep = [len(line) - len(line.lstrip()) for line in lines if line.strip()]
    return "\n".join(line[min(deep, default=0) :] for line in lines)
