"""What runs in the compile child: a hostile text, or a baseline's materials, becomes a library.

The reply says how far it came; the artifact lies in the job's folder. Neither is trusted: the
parent reads the manifest anew and compares it with the task.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import socket
import time
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, NonNegativeFloat

from edgekernelbench.evaluator import wire
from edgekernelbench.evaluator.static import (
    HEADER_TENSOR,
    Interface,
    StaticResult,
    check_text,
    lacking_dtypes,
)
from edgekernelbench.ir.diagnostics import Diagnostic
from edgekernelbench.targets.model import Target

_MAX_TEXT = 4000

Outcome = Literal[
    "built", "invalid_ir", "wrong_shape_or_dtype", "unsupported", "compile_error", "over_budget"
]


class _Message(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class KernelJob(_Message):
    """``compiler`` is ``module:Class`` of a `compilers.base.Compiler`."""

    text: str
    interface: Interface | None
    target: Target
    compiler: str


class KernelReply(_Message):
    """How far a kernel came; ``kernel_hash`` is there when the text parses."""

    outcome: Outcome
    kernel_hash: str | None = Field(default=None, pattern=r"\A[0-9a-f]{64}\z")
    message: str = ""
    diagnostics: tuple[dict[str, str | int | list[str] | list[int]], ...] = ()
    seconds: dict[str, NonNegativeFloat] = Field(default={}, max_length=16)


class BaselineJob(_Message):
    """``baseline`` is its name; the materials come in the job's first descriptor, the twin in
    its second."""

    baseline: str
    module: str
    target: Target


class BaselineReply(_Message):
    """Exactly one is given: the recipe, as JSON text, or why there is none."""

    recipe: str | None = None
    unavailable: str | None = None


def build_kernel(connection: socket.socket, payload: dict[str, Any], fds: list[int]) -> None:
    """Worker entry: payload is a `KernelJob`, the reply a `KernelReply`."""
    job = KernelJob.model_validate(payload)
    reply = _build_kernel(job)
    wire.send(connection, reply.model_dump())


def _build_kernel(job: KernelJob) -> KernelReply:
    from edgekernelbench.ir.printer import kernel_hash

    checked = check_text(job.text, job.interface)
    seconds = checked.seconds
    digest = None if checked.kernel is None else kernel_hash(checked.kernel)

    def reply(outcome: Outcome, found: tuple[Diagnostic, ...], message: str = "") -> KernelReply:
        dicts = tuple(_cut(d.as_dict(job.text)) for d in found)
        return KernelReply(
            outcome=outcome, kernel_hash=digest, message=message, diagnostics=dicts, seconds=seconds
        )

    found = checked.diagnostics
    if unfit := unfit_for(checked, job.target):
        return reply(unfit[0], found, unfit[1])
    assert checked.kernel is not None and checked.program is not None
    compiler = _load(job.compiler)()
    began = time.perf_counter()
    built = compiler.compile(checked.kernel, checked.program, job.target, Path.cwd())
    seconds["compile"] = time.perf_counter() - began
    found += built.diagnostics
    if built.artifact is not None:
        return reply("built", found)
    return reply(refusal(built.diagnostics), found)


def unfit_for(checked: StaticResult, target: Target) -> tuple[Outcome, str] | None:
    """Why a text need not be compiled, and a message where no diagnostic tells; None if it can."""
    if not checked.ok or checked.program is None:
        errors = [d for d in checked.diagnostics if d.severity == "error"]
        misfit = all(d.rule is HEADER_TENSOR for d in errors)
        return ("wrong_shape_or_dtype" if misfit else "invalid_ir"), ""
    lacking = lacking_dtypes(checked.program, target)
    return ("unsupported", lacking) if lacking else None


def refusal(diagnostics: tuple[Diagnostic, ...]) -> Outcome:
    """What a compiler's refusal amounts to."""
    from edgekernelbench.compilers.budget import beyond_limits

    return "over_budget" if beyond_limits(diagnostics) else "compile_error"


def text_hash(text: str) -> str:
    """SHA-256 (hex) of a text that does not parse."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _cut(diagnostic: dict[str, Any]) -> dict[str, Any]:
    """Bounded, so that a reply fits its cap whatever the text holds, and fit for any file."""
    return {
        key: _plain(value)
        if isinstance(value, str)
        else [_plain(line) for line in value[:8]]
        if isinstance(value, list) and all(isinstance(line, str) for line in value)
        else value
        for key, value in diagnostic.items()
    }


def _plain(text: str) -> str:
    return text[:_MAX_TEXT].encode("utf-8", "replace").decode()


def build_baseline(connection: socket.socket, payload: dict[str, Any], fds: list[int]) -> None:
    """Worker entry: payload is a `BaselineJob`, the reply a `BaselineReply`."""
    from edgekernelbench.baselines.base import Materials, Recipe
    from edgekernelbench.baselines.registry import load_baseline

    job = BaselineJob.model_validate(payload)
    materials = Materials.model_validate_json(_read(fds[0]))
    if len(fds) > 1:
        materials = materials.model_copy(update={"twin": _read(fds[1])})
    outcome = load_baseline(job.module).prepare(materials, job.target, Path.cwd())
    if isinstance(outcome, Recipe):
        reply = BaselineReply(recipe=outcome.model_dump_json())
    else:
        reply = BaselineReply(unavailable=outcome.reason[:_MAX_TEXT])
    wire.send(connection, reply.model_dump())


def _read(fd: int) -> bytes:
    return os.pread(fd, os.fstat(fd).st_size, 0)


def _load(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)
