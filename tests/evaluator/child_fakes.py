"""A compiler, runners and baselines that need neither the language nor TVM.

A "kernel" is the name of a C body below; it is compiled by the system's C compiler into a library
with ``void kernel(const float *x, const float *w, float *y, long n)``, which is to compute
``y = x * w``. Everything here runs in child processes.
"""

from __future__ import annotations

import ctypes
import functools
import os
import socket
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from edgekernelbench.baselines.base import OTHER, Materials, Recipe, Unavailable
from edgekernelbench.compilers.base import Argument, Manifest, StaticFacts
from edgekernelbench.evaluator import wire
from edgekernelbench.evaluator.buildchild import KernelReply
from edgekernelbench.ir.dtypes import DType
from edgekernelbench.targets.model import Target

N = 4096

_HEAD = """
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/mman.h>
static long calls;
static void right(const float *x, const float *w, float *y, long n) {
  for (long i = 0; i < n; i++) y[i] = x[i] * w[i];
}
"""

_PYTHON = """
extern int PyGILState_Ensure(void); extern void PyGILState_Release(int);
extern int PyRun_SimpleString(const char *);
static void python(const char *text) {
  int s = PyGILState_Ensure(); PyRun_SimpleString(text); PyGILState_Release(s);
}
"""

BODIES = {
    "canary": "(void)w; for (long i = 0; i < n; i++) y[i] = 2 * x[i] + 1;",
    "correct": "right(x, w, y, n);",
    "twice": "right(x, w, y, n); __asm__ volatile(\"\" ::: \"memory\"); right(x, w, y, n);",
    "wrong": "right(x, w, y, n); y[17] *= 1.01f;",
    "nothing": "(void)x; (void)w; (void)y; (void)n;",
    "half": "right(x, w, y, n / 2);",
    "zero": "memset(y, 0, n * sizeof *y);",
    "nan": "for (long i = 0; i < n; i++) y[i] = 0.0f / 0.0f;",
    "segfault": "*(volatile int *)8 = 1;",
    "abort": "abort();",
    "exit": "_exit(0);",
    "loop": "for (;;) __asm__ volatile(\"\");",
    "late_crash": "if (++calls > 20) abort(); right(x, w, y, n);",
    "memory": "for (;;) { char *p = malloc(64 << 20); if (!p) abort(); *p = 1; }",
    "behind": "right(x, w, y, n); y[n] = 1.0f;",
    "before": "right(x, w, y, n); y[-1] = 1.0f;",
    "input": "right(x, w, y, n); ((float *)x)[3] = 0.5f;",
    "fork": "for (int i = 0; i < 50; i++) if (fork() == 0) for (;;) pause(); right(x, w, y, n);",
    "kill_parent": "kill(getppid(), SIGKILL); kill(-1, SIGKILL); right(x, w, y, n);",
    "garbage": """
        for (int fd = 3; fd < 64; fd++) send(fd, "\\0\\0\\0\\5hello", 9, MSG_DONTWAIT);
        right(x, w, y, n);""",
    "flood": """
        static char big[1 << 16]; memset(big, 'x', sizeof big);
        for (int fd = 3; fd < 64; fd++) for (int i = 0; i < 100; i++)
          send(fd, big, sizeof big, MSG_DONTWAIT);
        right(x, w, y, n);""",
    "cached": """
        static float *first; if (!first) { right(x, w, y, n);
          first = malloc(n * sizeof *y); memcpy(first, y, n * sizeof *y); }
        memcpy(y, first, n * sizeof *y);""",
    "gives_up": "if (++calls <= 3) right(x, w, y, n);",
    "chatty": "for (int i = 0; i < 9; i++) write(1, \"hello\", 5); right(x, w, y, n);",
}  # fmt: skip

PYTHON_BODIES = {
    "canary": "(void)w; for (long i = 0; i < n; i++) y[i] = 2 * x[i] + 1;",
    "forged_clock": """
        if (!calls++) python("import time\\nreal = time.perf_counter_ns\\n"
          "time.perf_counter_ns = lambda: real() // 8");
        right(x, w, y, n);""",
    "clock_from_the_future": """
        if (!calls++) python("import time\\nt = [0]\\n"
          "def f():\\n  t[0] += 10**12\\n  return t[0]\\ntime.perf_counter_ns = f");
        right(x, w, y, n);""",
    "inputs_rewritten": """
        if (!calls++) python("import gc, mmap\\n"
          "for m in gc.get_objects():\\n"
          "  if isinstance(m, mmap.mmap):\\n"
          "    try: m[0:4] = bytes(4)\\n"
          "    except Exception: pass");
        right(x, w, y, n);""",
}  # fmt: skip

COMPILE_JOBS = ("#slow_compile", "#crash", "#eat", "#bad_reply", "#no_artifact", "#misfit")


def compile_c(body: str, folder: Path) -> None:
    """Writes ``kernel.so``."""
    prelude = _HEAD + (_PYTHON if body in PYTHON_BODIES else "")
    code = BODIES.get(body) or PYTHON_BODIES[body]
    source = f"{prelude}\nvoid kernel(const float *x, const float *w, float *y, long n) {{{code}}}"
    (folder / "kernel.c").write_text(source)
    command = ["cc", "-O2", "-march=native", "-shared", "-fPIC", "-w", "kernel.c"]
    subprocess.run([*command, "-o", "kernel.so"], cwd=folder, check=True)


def manifest(workspace: int = 0, n: int = N, out: int = N, const: bool = True) -> Manifest:
    def argument(name: str, role: Any, extent: int) -> Argument:
        return Argument(name=name, dtype=DType.F32, shape=(extent,), role=role)

    weights = (argument("w", "const", n),) if const else ()
    arguments = (argument("x", "input", n), *weights, argument("y", "output", out))
    facts = StaticFacts(
        flops=N, io_bytes=12 * N, packed_bytes=0, workspace_bytes=workspace, code_bytes=None,
        compile_seconds=0.1, nest="",
    )  # fmt: skip
    return Manifest(
        kernel="fake", target="fake", library="kernel.so", arguments=arguments,
        main_args=("x", "w", "y"), facts=facts,
    )  # fmt: skip


def build_kernel(connection: socket.socket, payload: dict[str, Any], fds: list[int]) -> None:
    """Stands in for `buildchild.build_kernel`. The text is a body's name, or one of the jobs."""
    text = payload["text"].strip()
    made = manifest()
    match text:
        case "#slow_compile":
            time.sleep(600)
        case "#crash":
            os.abort()
        case "#eat":
            bytearray(1 << 45)
        case "#bad_reply":
            wire.send(connection, {"outcome": "marvellous"})
            return
        case "#syntax":
            found = ({"code": "E100", "severity": "error", "message": "what is this"},)
            reply = KernelReply(outcome="invalid_ir", diagnostics=found)
            wire.send(connection, reply.model_dump())
            return
        case "#f32":
            reply = KernelReply(outcome="unsupported", message="no f32 here")
            wire.send(connection, reply.model_dump())
            return
        case "#no_artifact":
            wire.send(connection, KernelReply(outcome="built").model_dump())
            return
        case "#misfit":
            made, text = manifest(out=N // 2), "correct"
        case "#canary":
            made, text = manifest(n=64, out=64, const=False), "canary"
        case "#huge":
            made, text = manifest(workspace=1 << 50), "correct"
    if text not in BODIES | PYTHON_BODIES:
        raise ValueError(f"no body {text!r}")
    compile_c(text, Path.cwd())
    Path("manifest.json").write_text(made.model_dump_json())
    wire.send(connection, KernelReply(outcome="built", kernel_hash="0" * 64).model_dump())


class CRunner:
    """Runs ``kernel.so``."""

    def __init__(self, folder: Path, options: Mapping[str, Any]) -> None:
        library = ctypes.CDLL(str(folder / "kernel.so"))
        self._kernel = library.kernel
        self._kernel.restype = None

    def bind(
        self,
        inputs: Mapping[str, np.ndarray],
        consts: Mapping[str, np.ndarray],
        outputs: Mapping[str, np.ndarray],
        twin: bytes | None,
    ) -> Callable[[], None]:
        x, y = inputs["x"], outputs["y"]
        pointers = [ctypes.c_void_p(a.ctypes.data) for a in (x, consts.get("w", x), y)]
        return functools.partial(self._kernel, *pointers, ctypes.c_long(y.size))


class RaisingRunner(CRunner):
    """Its call raises."""

    def bind(self, *arrays: Any) -> Callable[[], None]:
        def call() -> None:
            raise MemoryError("no workspace")

        return call


class Baseline:
    """A baseline whose program is a C body."""

    version = 1

    def __init__(self, name: str, body: str, scored: bool = True) -> None:
        self.name, self.body, self.scored = name, body, scored

    def available(self, materials: Materials, target: Target) -> str | None:
        return "never there" if self.body == "#unavailable" else None

    def prepare(self, materials: Materials, target: Target, folder: Path) -> Recipe | Unavailable:
        if self.body == "#unavailable_late":
            return Unavailable("found out late")
        if self.body == "#broken":
            raise RuntimeError("baseline build is broken")
        compile_c(self.body, folder)
        return Recipe(baseline=self.name, kind="tvm-library", route="C", notes=("a fake",))


class TwoBuilds(Baseline):
    """The first build's result is wrong, the other one's is not."""

    def prepare(self, materials: Materials, target: Target, folder: Path) -> Recipe | Unavailable:
        (folder / OTHER).mkdir()
        compile_c("correct", folder / OTHER)
        compile_c(self.body, folder)
        other = Recipe(baseline=self.name, kind="tvm-library", route="another C")
        return Recipe(baseline=self.name, kind="tvm-library", route="C", other=other)


GOOD = Baseline("good", "correct")
SLOW = Baseline("slow", "twice")
RAW = Baseline("raw", "twice", scored=False)
WRONG = Baseline("wrong", "wrong")
DYING = Baseline("dying", "late_crash")
NONE = Baseline("none", "#unavailable")
LATE = Baseline("late", "#unavailable_late")
BROKEN = Baseline("broken", "#broken")
TWO = TwoBuilds("two", "wrong")
