"""Runs the kernels of a loop program with pyopencl: the oracle of the tests of GPU lowering."""

from __future__ import annotations

from typing import Any

import numpy as np

from edgekernelbench.lowering import nest
from edgekernelbench.targets.model import Target

DTYPES = {"uint8": np.uint8, "bool": np.uint8}


def device(name: str = "Portable"):
    import pyopencl as cl

    found = [p for p in cl.get_platforms() if name in p.name]
    return found[0].get_devices()[0]


class DeviceRun:
    """One module on one device; ``arrays`` by tensor name are filled with the results."""

    def __init__(self, module: nest.Module, target: Target, dev: Any) -> None:
        import pyopencl as cl

        from edgekernelbench.compilers.tvm.gpu import build
        from edgekernelbench.compilers.tvm.gpu.emit import emit_device_module

        tvm_target = build.device_target(target)
        lowered = build.split(emit_device_module(module, target.backend), tvm_target)
        self.source = build.device_source(lowered, tvm_target)
        self.hosts = {v.name_hint: f for v, f in lowered.functions.items()}
        self.module = module
        self.cl, self.context = cl, cl.Context([dev])
        self.queue = cl.CommandQueue(self.context)
        self.program = cl.Program(self.context, self.source).build()
        self.launches = 0

    def run(self, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        cl, flags = self.cl, self.cl.mem_flags
        buffers = {
            name: cl.Buffer(
                self.context, flags.READ_WRITE | flags.COPY_HOST_PTR,
                hostbuf=np.ascontiguousarray(a).reshape(-1) if a.size else np.zeros(1, a.dtype),
            )
            for name, a in arrays.items()
        }  # fmt: skip
        for tensor in self.module.packed:
            buffers[tensor.name] = cl.Buffer(self.context, flags.READ_WRITE, max(4, tensor.bytes))
        if self.module.prepack is not None:
            self._call(self.module.prepack, buffers)
        self._call(self.module.main, buffers)
        out = {}
        for tensor in self.module.main.params:
            if tensor.kind == "output":
                flat = np.empty(max(1, tensor.size), tensor.dtype.numpy)
                cl.enqueue_copy(self.queue, flat, buffers[tensor.name])
                out[tensor.name] = flat[: tensor.size].reshape(tensor.shape)
        return out

    def _call(self, function: nest.Function, buffers: dict[str, Any]) -> None:
        host = self.hosts[function.name]
        found = [buffers[tensor.name] for tensor in function.params]
        self._statement(host.body, list(zip(host.params, found, strict=True)), {})
        self.queue.finish()

    def _statement(self, s: Any, env: list[tuple[Any, Any]], values: dict[str, int]) -> None:
        """``env``: device buffers by the variables of the host function."""
        match type(s).__name__:
            case "SeqStmt":
                for inner in s.seq:
                    self._statement(inner, env, values)
            case "AllocBuffer":
                count = int(np.prod([int(n) for n in s.buffer.shape]))
                size = max(1, count) * np.dtype(str(s.buffer.dtype)).itemsize
                poison = np.full(size, 0xFF, np.uint8)  # NaN, or -1
                flags = self.cl.mem_flags.READ_WRITE | self.cl.mem_flags.COPY_HOST_PTR
                env.append((s.buffer, self.cl.Buffer(self.context, flags, hostbuf=poison)))
            case "DeclBuffer":
                env.append((s.buffer, _buffer(s.data, env)))
            case "For":
                for n in range(int(s.extent)):
                    self._statement(s.body, env, {**values, s.loop_var.name: n})
            case "Bind":
                values[s.var.name] = _value(s.value, values)
            case "Evaluate":
                self._launch(s.value, env, values)
            case other:
                raise NotImplementedError(f"{other}: {s}")

    def _launch(self, call: Any, env: list[tuple[Any, Any]], values: dict[str, int]) -> None:
        if type(call).__name__ == "IntImm":
            return
        axes = [str(axis) for axis in call.attrs.launch_params]
        name, arguments = str(call.args[0].value), list(call.args[1:])
        split = len(arguments) - len(axes)
        sizes = dict(zip(axes, (_value(a, values) for a in arguments[split:]), strict=True))
        blocks, threads = sizes.get("blockIdx.x", 1), sizes.get("threadIdx.x", 1)
        given = [
            np.int32(_value(a, values)) if _is_number(a) else _buffer(a, env)
            for a in arguments[:split]
        ]
        kernel = self.cl.Kernel(self.program, name)
        kernel(self.queue, (blocks * threads,), (threads,), *given)
        self.launches += 1


def _is_number(argument: Any) -> bool:
    return "handle" not in str(argument.ty)


def _buffer(data: Any, env: list[tuple[Any, Any]]) -> Any:
    variable = data.args[0]
    return next(found for known, found in reversed(env) if known.same_as(variable))


def _value(e: Any, values: dict[str, int]) -> int:
    match type(e).__name__:
        case "IntImm":
            return int(e.value)
        case "Var":
            return values[e.name]
        case kind:
            a, b = _value(e.a, values), _value(e.b, values)
            return {"Add": a + b, "Sub": a - b, "Mul": a * b}[kind]
