"""Everything a model is told, from text files in this folder and the IR guide.

The guide is ``docs/ir.md`` without its recipes: those are kernels of patterns that tasks have, and
a model is never shown one of its own. In their place stands a kernel of the gallery that belongs to
another pattern and is not held out.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from edgekernelbench.agents.base import Budget, Task
from edgekernelbench.agents.model import Message
from edgekernelbench.errors import UsageError
from edgekernelbench.suite.gallery import shown_for
from edgekernelbench.targets.model import Target

CHARS_PER_TOKEN = 2.6
"""Of prompts like ours. Measured on the guide: 2.76 and 2.65 with two vendors' published
tokenizers; fewer characters count more tokens, so the estimate errs to the safe side."""

MAX_TOKENS = 7000
"""Of a first prompt, as estimated; longer statements get the shortest example. The page about GPUs
comes on top."""

NAME_TOKENS = 30
"""What the name of an example takes."""

_TEMPLATES = ("system.md.j2", "task.md.j2", "feedback.md.j2")


def estimate_tokens(text: str) -> int:
    """About how many tokens a prompt has, rather too many than too few."""
    return int(len(text) / CHARS_PER_TOKEN) + 1


@cache
def guide() -> str:
    """The IR guide without its recipes.

    Raises:
        UsageError: it is neither packaged nor in the clone around this file.
    """
    return _page("ir.md")


@cache
def gpu_guide() -> str:
    """The page about layers for GPUs, likewise."""
    return _page("ir-gpu.md")


def _page(name: str) -> str:
    packaged = resources.files("edgekernelbench.agents.prompts") / name
    places = (packaged, Path(__file__).parents[4] / "docs" / name)
    for place in places:
        if place.is_file():
            text = place.read_text(encoding="utf-8")
            recipes = r"^## \d+ Recipes\n.*?(?=^## |\Z)"
            text = re.sub(recipes, "", text, flags=re.DOTALL | re.MULTILINE)
            return re.sub(r" \(recipe `\w+`\)", "", text)  # what is not there is not named
    raise UsageError(
        f"the IR guide is neither {places[0]} nor {places[1]}",
        "install edgekernelbench from a wheel, or work in a full clone",
    )


@cache
def prompt_version(templates: tuple[str, ...] = _TEMPLATES) -> str:
    """Short hash of the guides and of an agent's templates; records of other prompts differ."""
    folder = resources.files("edgekernelbench.agents.prompts")
    texts = [
        guide(),
        gpu_guide(),
        *((folder / name).read_text(encoding="utf-8") for name in templates),
    ]
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:12]


def first_prompt(task: Task, budget: Budget | None = None) -> tuple[Message, ...]:
    """What a model is asked at the beginning of an attempt.

    Args:
        budget: what it may use to try kernels; None when it cannot try any.
    """
    target = task.target
    more = gpu_guide() if target.gpu is not None else ""
    system = render("system.md.j2", guide=guide() + ("\n" + more if more else ""))
    values = {
        "statement": task.workload.statement(),
        "target": target_facts(target),
        "baselines": BASELINES[target.backend],
        "budget": "" if budget is None else budget_text(budget),
        "section": target.section_names[1],
    }
    without = render("task.md.j2", **values, example_name="", example="")
    most = MAX_TOKENS + estimate_tokens(more)
    left = most - estimate_tokens(system) - estimate_tokens(without) - NAME_TOKENS
    section = target.section_names[1]
    example = shown_for(task.workload, int(left * CHARS_PER_TOKEN), section)
    kernel = example.kernel_for(section).strip()
    text = render("task.md.j2", **values, example_name=example.workload.id, example=kernel)
    return (Message("system", system), Message("user", text))


_ON_CPU = "under default rules, its tuned schedules, and ONNX Runtime, all with the same threads"
BASELINES = {
    "llvm": f"the compiler {_ON_CPU}",
    "c": f"the reference compiler {_ON_CPU}",
    "cuda": "the compiler under its GPU rules, and PyTorch with its vendor's libraries",
    "opencl": "the compiler under its GPU rules and its tuned schedules",
}


def target_facts(target: Target) -> str:
    """What an author should know of a device, on one line."""
    caches = ", ".join(f"{size / 1024:,.0f} KiB" for size in target.cache_bytes)
    name = f"{target.description or target.name} ({target.backend})"
    if target.gpu is not None:
        gpu = target.gpu
        return (
            f"{name}, {gpu.units} multiprocessors, up to {gpu.max_threads} threads a block in "
            f"groups of {gpu.warp}, {gpu.shared_bytes >> 10} KiB of shared memory a block"
            + (f", last-level cache {caches}" if caches else "")
        )
    return (
        f"{name}, {target.threads} threads, {target.vector_bits}-bit vectors, data caches {caches}"
    )


def budget_text(budget: Budget) -> str:
    """What is left, as a phrase; empty where nothing is limited."""
    limits, spent = budget.limits, budget.spent
    parts = []
    if limits.evaluations is not None:
        left = limits.evaluations - (spent.evaluations or 0)
        parts.append(f"{left} evaluation{'s' if left != 1 else ''} on the device")
    if limits.tokens is not None:
        parts.append(f"{max(0, limits.tokens - (spent.tokens or 0)):,} tokens")
    if limits.seconds is not None:
        parts.append(f"{max(0.0, limits.seconds - (spent.seconds or 0.0)):.0f} s")
    return ", ".join(parts)


def render(name: str, **values: Any) -> str:
    """A template of this folder; a value that it asks for and does not get is an error."""
    return _environment().get_template(name).render(**values)


@cache
def _environment() -> Any:
    import jinja2

    return jinja2.Environment(
        loader=jinja2.FunctionLoader(_source),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=False,
        autoescape=False,
    )


def _source(name: str) -> str | None:
    file = resources.files("edgekernelbench.agents.prompts") / name
    return file.read_text(encoding="utf-8") if file.is_file() else None
