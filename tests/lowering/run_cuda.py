"""Runs the CUDA source of a kernel on this CPU, tensor cores and all: see ``cuda_shim.h``."""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path

import numpy as np

from edgekernelbench.compilers.launch import calls
from edgekernelbench.compilers.tvm.device import host, split
from edgekernelbench.compilers.tvm.gpu.build import device_target
from edgekernelbench.compilers.tvm.gpu.emit import emit_device_module
from edgekernelbench.ir.core import Program
from edgekernelbench.lowering import nest
from edgekernelbench.targets.model import Target

_KERNEL = re.compile(r'extern "C" __global__ void [^;{]*?(\w+)\(([^;{)]*)\) \{', re.DOTALL)


def cuda_source(module: nest.Module, target: Target) -> str:
    tvm_target = device_target(target)
    return split.source(
        split.split_loops(emit_device_module(module, "cuda"), tvm_target), tvm_target
    )


def emulated(
    module: nest.Module,
    program: Program,
    target: Target,
    inputs: dict[str, np.ndarray],
    folder: Path,
) -> dict[str, np.ndarray]:
    """The outputs of a kernel that packs nothing and whose launches take buffers only."""
    tvm_target = device_target(target)
    parts = split.split_loops(emit_device_module(module, "cuda"), tvm_target)
    names = [tensor.name for tensor in module.main.params]
    plan = host.read_host(parts.hosts["main"], names, parts.kernels)
    library = _built(split.source(parts, tvm_target), folder)
    arrays = {name: np.ascontiguousarray(array) for name, array in inputs.items()}
    outputs = {t.name: np.zeros(t.shape, t.dtype.numpy) for t in program.outputs}
    arrays |= outputs
    arrays |= {space.name: np.zeros(space.bytes, np.uint8) for space in plan.workspaces}
    for call in calls(plan):
        pointers = [arrays[str(name)].ctypes.data for name in call.arguments]
        given = (ctypes.c_void_p * len(pointers))(*pointers)
        library[f"run_{call.kernel}"](given, call.groups[0], call.group_size[0])
    return outputs


def _built(source: str, folder: Path) -> ctypes.CDLL:
    kernels = list(_KERNEL.finditer(source))
    text = '#include "cuda_shim.h"\n' + source[kernels[0].start() :]
    text = re.sub(r"__shared__ (alignas\(\d+\))", r"\1 static", text)
    for found in kernels:
        name, parameters = found.groups()
        count = len(parameters.split(","))
        kinds = [
            p.strip().rsplit(" ", 1)[0].replace("__restrict__", "") for p in parameters.split(",")
        ]
        given = ", ".join(f"({kinds[k]})a[{k}]" for k in range(count))
        text += f'extern "C" void run_{name}(void** a, int blocks, int threads) {{\n'
        text += f"  launch([](void** a) {{ {name}({given}); }}, a, blocks, threads);\n}}\n"
    (folder / "k.cpp").write_text(text, encoding="utf-8")
    here = Path(__file__).parent
    command = [
        "g++",
        "-std=c++17",
        "-O1",
        "-w",
        "-shared",
        "-fPIC",
        f"-I{here}",
        "-o",
        "k.so",
        "k.cpp",
    ]
    subprocess.run(command, cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "k.so"))
