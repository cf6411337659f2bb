"""Small changes of whole kernels: another header, other layers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from edgekernelbench.ir.surface import Kernel, MemoryLayer, ScheduleLayer


def replace_header(kernel: Kernel, header: Kernel) -> Kernel:
    """The kernel with name, sizes, inputs and outputs of another one."""
    return replace(
        kernel,
        name=header.name,
        sizes=header.sizes,
        inputs=header.inputs,
        outputs=header.outputs,
    )


def with_layers(
    kernel: Kernel,
    schedules: Iterable[ScheduleLayer] | None = None,
    memories: Iterable[MemoryLayer] | None = None,
) -> Kernel:
    """The kernel with its schedule or memory layers exchanged; None keeps them.

    Raises:
        ValueError: when two layers of a kind have the same target.
    """
    new = replace(
        kernel,
        schedules=kernel.schedules if schedules is None else tuple(schedules),
        memories=kernel.memories if memories is None else tuple(memories),
    )
    for layers in (new.schedules, new.memories):
        targets = [layer.target for layer in layers]
        if len(set(targets)) != len(targets):
            raise ValueError(f"two layers of one kind have the same target: {targets}")
    return new
