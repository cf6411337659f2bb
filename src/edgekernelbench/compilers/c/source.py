"""The source of a whole loop program: its functions, what they call, and how they are called."""

from __future__ import annotations

import re
from collections.abc import Iterator

from edgekernelbench.compilers.c import frame
from edgekernelbench.compilers.c.emit import FunctionPrinter
from edgekernelbench.compilers.c.functions import closure, prologue
from edgekernelbench.compilers.contraction import find_fences
from edgekernelbench.lowering import nest

_CLOCK = 1  # CLOCK_MONOTONIC on Linux
_NOW = f"""\
#include <time.h>

/* Nanoseconds of the steady clock. */
static int64_t now_ns(void) {{
  struct timespec now;
  clock_gettime({_CLOCK}, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}}
"""


def source(module: nest.Module, title: str, names: tuple[str, str] = ("main", "prepack")) -> str:
    """The C source of a loop program: its functions under the exported names.

    Args:
        title: the kernel's name.
    """
    functions = [module.main, *(() if module.prepack is None else (module.prepack,))]
    fences = find_fences(tuple(functions))
    texts = []
    for function, symbol, own in zip(functions, names, ("kernel", "prepack"), strict=False):
        printer = FunctionPrinter(function, fences, module.options, own)
        texts += [printer.text(), frame.entry(symbol, own, printer.pointers())]
    body = "\n".join(texts)
    words = set(_words(body))
    used = closure(words)
    parts = [f"/* Kernel {title}, from its loop program. */\n", prologue(used)]
    parts += [_NOW] if "now_ns" in words else []
    parts.append(frame.CONVENTION)
    parts += [frame.THREADS] if "__TVMBackendParallelLaunch" in words else []
    parts += [frame.WORKSPACE] if "__TVMBackendAllocWorkspace" in words else []
    return "\n".join([*parts, *(f"{text}\n" for text in used), body])


def _words(text: str) -> Iterator[str]:
    return (match[0] for match in re.finditer(r"[A-Za-z_]\w*", text))
