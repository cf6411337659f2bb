"""Hostile programs in the place of a kernel's machine code, and of the compiler.

The kernel language cannot say any of this. Here stands what a kernel could do that breaks out of
it: a function of Python in the kernel's own process, under the real sandbox. One that gets away
with its trick goes on with the right result, so that ``correct`` is what success looks like.

Everything here runs in child processes.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from edgekernelbench.baselines.base import Materials, Recipe, Unavailable
from edgekernelbench.evaluator import wire
from edgekernelbench.evaluator.buildchild import KernelReply
from edgekernelbench.targets.model import Target
from tests.adversarial import builds, tricks
from tests.evaluator.child_fakes import Baseline, CRunner, compile_c, manifest

TRICK = "trick.txt"


def build_kernel(connection: socket.socket, payload: dict[str, Any], fds: list[int]) -> None:
    """Stands in for `buildchild.build_kernel`. The text is the name of a trick and what it needs
    to know, ``#canary``, or ``right``."""
    name, _, about = payload["text"].partition(" ")
    made = manifest()
    if name == "#canary":
        name, made = "right", manifest(n=64, out=64, const=False)
        compile_c("canary", Path.cwd())
    else:
        compile_c("correct", Path.cwd())
    Path("manifest.json").write_text(made.model_dump_json())
    Path(TRICK).write_text(f"{name} {about}")
    reply = KernelReply(outcome="built", kernel_hash="0" * 64).model_dump()
    if name in builds.ALL:
        builds.ALL[name](connection, reply, about)
    wire.send(connection, reply)


class Runner(CRunner):
    """Runs ``kernel.so``, and the trick before or instead."""

    def __init__(self, folder: Path, options: Mapping[str, Any]) -> None:
        super().__init__(folder, options)
        self._name, _, self._about = (folder / TRICK).read_text().partition(" ")

    def bind(
        self,
        inputs: Mapping[str, np.ndarray],
        consts: Mapping[str, np.ndarray],
        outputs: Mapping[str, np.ndarray],
        twin: bytes | None,
    ) -> Callable[[], None]:
        right = super().bind(inputs, consts, outputs, twin)
        trick = tricks.ALL.get(self._name)
        if trick is None:
            return right
        return trick(tricks.Around(right, dict(inputs), dict(outputs), self._about))


class Neighbour(Baseline):
    """A baseline that the candidate might harm."""

    def prepare(self, materials: Materials, target: Target, folder: Path) -> Recipe | Unavailable:
        (folder / TRICK).write_text("right ")
        return super().prepare(materials, target, folder)


NEIGHBOUR = Neighbour("neighbour", "correct")
