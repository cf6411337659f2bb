"""The gallery: hand-written kernels with a page each, and which of them to show with a task.

In a clone the files are ``gallery/`` and ``docs/gallery/``; a wheel carries copies beside the
suite's tables.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from edgekernelbench.errors import UsageError
from edgekernelbench.ir.parse import parse
from edgekernelbench.suite.load import load_suite
from edgekernelbench.suite.model import Definition, Workload
from edgekernelbench.suite.source import reference_source

KIN: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "activation": ("normalization",),
        "cnn_model": ("conv_block", "conv2d"),
        "elementwise": ("normalization",),
        "graph": ("recommendation",),
        "image": ("depthwise_conv", "pooling", "resample"),
        "llm_model": ("transformer_model",),
        "mlp_model": ("matmul",),
        "recurrent_model": ("recurrent",),
        "reduction": ("normalization",),
        "robotics": ("linear_algebra",),
        "transformer_mlp": ("matmul",),
    }
)
"""Families that the gallery has no kernel of, and those whose decisions are most like theirs."""

_SECTIONS = {"cpu": frozenset({"cpu", "llvm"}), "gpu": frozenset({"gpu", "cuda", "opencl"})}
"""Names of layers for a kind of target."""

_WORD = re.compile(r"[a-z][a-z]+|[a-z]+\d+[a-z]?")


@dataclass(frozen=True)
class Example:
    """A kernel of the gallery, named after its workload; texts are read when asked for."""

    workload: Workload
    kernel_file: Traversable
    page_file: Traversable

    @property
    def kernel(self) -> str:
        """The text of the kernel, all layers."""
        return self.kernel_file.read_text(encoding="utf-8")

    def kernel_for(self, section: str) -> str:
        """The text without layers for other kinds of targets; all of it where there is none for
        this kind.

        Args:
            section: ``cpu`` or ``gpu``.
        """
        return _layers_of(self.kernel, _SECTIONS[section])

    @property
    def page(self) -> str:
        """Markdown: what is computed, and why each layer is as it is."""
        return self.page_file.read_text(encoding="utf-8")


@cache
def load_gallery() -> Mapping[str, Example]:
    """All examples by workload, in the order of ``ids.txt``.

    Raises:
        UsageError: the files are in neither place, or name a workload that the suite lacks.
    """
    kernels, pages = _folders()
    found: dict[str, Example] = {}
    for line in (kernels / "ids.txt").read_text(encoding="utf-8").splitlines():
        id = line.partition("#")[0].strip()
        if not id:
            continue
        workload = load_suite().workloads.get(id)
        if workload is None:
            raise UsageError(f"gallery: no workload {id!r}", "put that line of ids.txt right")
        found[id] = Example(workload, kernels / f"{id}.ekir", pages / f"{id}.md")
    return MappingProxyType(found)


@cache
def _layers_of(text: str, names: frozenset[str]) -> str:
    kernel = parse(text).kernel
    assert kernel is not None, "kernels of the gallery parse"
    layers = (*kernel.schedules, *kernel.memories)
    if not any(layer.target in names for layer in layers):
        return text
    others = [layer.span for layer in layers if layer.target not in names]
    for span in sorted(others, key=lambda span: span.start, reverse=True):
        first, end = text.rindex("\n", 0, span.start), span.end
        text = text[:first] + text[end:]
    return text


def shown_for(
    workload: Workload,
    longest: int | None = None,
    section: str = "cpu",
    layer: Literal["schedule", "memory"] | None = None,
) -> Example:
    """The example that an author of a kernel for ``workload`` learns most from.

    It is one of `examples_for` the task. The same family comes first, then one of `KIN`, then the
    nearest level, then the largest share of words that both references use.

    Args:
        longest: characters that its kernel may have; if all have more, the shortest is taken.
        section: whose layers count (``cpu`` or ``gpu``).
        layer: that its kernel must have for this section.

    Raises:
        UsageError: see `load_gallery`.
    """
    words = _words(workload.definition)

    kin = KIN.get(workload.family, ())

    def merit(example: Example) -> tuple[bool, bool, int, float]:
        other = example.workload
        theirs = _gallery_words()[other.id]
        shared = len(words & theirs) / len(words | theirs)
        distance = abs(other.level - workload.level)
        return other.family == workload.family, other.family in kin, -distance, shared

    def size(example: Example) -> int:
        return len(example.kernel_for(section))

    others = [
        other
        for other in examples_for(workload)
        if layer is None or f"{layer} for " in other.kernel_for(section)
    ]
    short = [other for other in others if longest is None or size(other) <= longest]
    return max(short, key=merit) if short else min(others, key=size)


def examples_for(workload: Workload) -> list[Example]:
    """All examples that an author of a kernel for ``workload`` may see: none of the task's own
    pattern, none that is held out.

    Raises:
        UsageError: see `load_gallery`.
    """
    return [
        example
        for example in load_gallery().values()
        if example.workload.pattern != workload.pattern and not example.workload.heldout
    ]


def _folders() -> tuple[Traversable, Traversable]:
    """Of kernels and of pages: the wheel's copies, else those of the clone around this file."""
    packaged = resources.files("edgekernelbench.suite") / "data" / "gallery"
    root = Path(__file__).parents[3]
    places = ((packaged / "kernels", packaged / "pages"), (root / "gallery", root / "docs/gallery"))
    for kernels, pages in places:
        if (kernels / "ids.txt").is_file():
            return kernels, pages
    raise UsageError(
        f"the gallery's files are in neither {packaged} nor {root / 'gallery'}",
        "install edgekernelbench from a wheel, or work in a full clone",
    )


@cache
def _gallery_words() -> Mapping[str, frozenset[str]]:
    return {id: _words(example.workload.definition) for id, example in load_gallery().items()}


def _words(definition: Definition) -> frozenset[str]:
    """Of the name, the formula and the reference, in lower case, of two letters or more."""
    parts = (
        definition.id.replace("_", " "),
        definition.formula,
        reference_source(definition.pattern).replace("_", " "),
    )
    return frozenset(_WORD.findall(" ".join(parts).lower()))
