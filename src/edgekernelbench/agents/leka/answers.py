"""Patches out of a model's answer. An answer is untrusted text and only ever searched."""

from __future__ import annotations

import re
from collections.abc import Iterator

from edgekernelbench.agents.answers import (
    MAX_KERNEL,
    block_end,
    definitions_before,
    extract_kernel,
    plain_text,
)
from edgekernelbench.agents.leka.layers import LAYERS, Layer, Patch
from edgekernelbench.analysis.report import told
from edgekernelbench.ir.parse import parse

_MOST = 8
_BLOCK = re.compile(
    r"^[ \t]*(?:compute|(schedule|memory)[ \t]+for[ \t]+\w+)[ \t]*(?=\{)", re.MULTILINE
)
_REASON = re.compile(r"^[ \t#*>-]*(?:why|reason)[ \t*]*:[ \t*]*(.+)$", re.IGNORECASE | re.MULTILINE)
_REASON_CHARS = 200


def patches_in(answer: str, wanted: Layer) -> tuple[Patch, ...]:
    """The alternatives that an answer has for a layer, in order and without repetitions.

    Whole kernels count as well: their block of that layer is taken. An answer that has nothing for
    this layer and blocks of one other has its author's say about which layer is due, and these are
    returned; one with blocks of two others has none.
    """
    found = list(dict.fromkeys(_patches(plain_text(answer))))
    mine = [patch for patch in found if patch.layer == wanted]
    others = {patch.layer for patch in found} - {wanted}
    if not mine and len(others) == 1:
        mine = found
    return tuple(mine[:_MOST])


def nothing_in(answer: str, wanted: Layer) -> str:
    """What an answer without a patch is to be told: what is wrong with the kernel in it, if it has
    one."""
    lacking = f"your answer had no block for the {wanted} layer"
    kernel = extract_kernel(answer)
    diagnostics = () if kernel is None else parse(kernel.text).diagnostics
    if kernel is None or not diagnostics:
        return lacking
    return f"{lacking}; of the kernel in it:\n{told(diagnostics, kernel.text)}"


def _patches(text: str) -> Iterator[Patch]:
    before = 0
    for match in _BLOCK.finditer(text):
        end = block_end(text, match.end(), min(len(text), match.end() + MAX_KERNEL))
        if end is None:
            continue
        layer: Layer = match[1] or "compute"  # type: ignore[assignment]
        assert layer in LAYERS
        begin = match.start()
        if layer == "compute":
            begin = definitions_before(text, _kernel_before(text, begin), before, [])
        block = text[match.start() : end].strip()
        definitions = text[begin : _kernel_before(text, match.start())].strip()
        reasons = _REASON.findall(text, before, match.start())
        reason = reasons[-1].strip()[:_REASON_CHARS] if reasons else ""
        yield Patch(
            layer, f"{definitions}\n{block}".strip() if layer == "compute" else block, reason
        )
        before = end


def _kernel_before(text: str, at: int) -> int:
    """Where the header begins whose brace stands right before a block; ``at`` if there is none."""
    heads = list(re.finditer(r"\bkernel[ \t]+\w+", text[:at]))
    if heads and text[heads[-1].start() : at].rstrip().endswith("{"):
        return heads[-1].start()
    return at
