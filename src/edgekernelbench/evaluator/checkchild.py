"""What runs in the process of a checked run: one call of a kernel on the checker's device."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from edgekernelbench.compilers.tvm.device import oclgrind
from edgekernelbench.compilers.tvm.device.load import LoadedDeviceKernel
from edgekernelbench.evaluator import wire
from edgekernelbench.evaluator.regions import Layout, read_only
from edgekernelbench.targets.device import DeviceChoice
from edgekernelbench.targets.model import Gpu


class CheckedRun(BaseModel):
    """Descriptors that come along: inputs, constants. ``gpu``: limits to simulate."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    device: DeviceChoice
    gpu: Gpu
    inputs: Layout
    consts: Layout


def serve(connection: socket.socket, payload: dict[str, Any], fds: list[int]) -> None:
    """Worker entry: payload is a `CheckedRun`. The reply says that it has ended; what was found
    lies in the log beside the kernel."""
    job = CheckedRun.model_validate(payload)
    folder = Path.cwd()
    os.environ.update(oclgrind.settings(job.gpu, str(folder / oclgrind.LOG)))
    inputs, consts = (
        layout.views(read_only(fd, layout.size))
        for layout, fd in zip((job.inputs, job.consts), fds, strict=True)
    )
    LoadedDeviceKernel(folder, job.device).run_apart(inputs, consts)
    wire.send(connection, {"done": True})
