"""The C compiler that the target ``c`` builds with: `$CC`, else ``cc``, ``gcc`` or ``clang``."""

from __future__ import annotations

import functools
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from edgekernelbench.errors import UsageError
from edgekernelbench.targets.host import host_target
from edgekernelbench.targets.model import Target

GET = "install gcc or clang, or set CC to a compiler's path"
_SECONDS = 60
_TRIAL = """\
#include <stdint.h>
typedef int v4 __attribute__((vector_size(16)));
static inline __attribute__((always_inline)) float f(float x) { return __builtin_fmaf(x, x, x); }
int trial(const float *restrict x, float *restrict y);
int trial(const float *restrict x, float *restrict y) {
  x = __builtin_assume_aligned(x, 64);
  _Pragma("omp simd")
  for (int32_t i = 0; i < 8; ++i) y[i] = f(x[i]);
  return (int)sizeof(v4);
}
"""


@dataclass(frozen=True, slots=True)
class CCompiler:
    """A C compiler of this machine.

    Attributes:
        command: that it is called by, with what `CC` adds.
        version: the first line of what it says of itself.
        machine: the triple that it builds for.
    """

    command: tuple[str, ...]
    version: str
    machine: str

    @property
    def identity(self) -> str:
        """What decides what it makes of a source."""
        return f"{' '.join(self.command)}: {self.version}, {self.machine}"


def find_compiler() -> CCompiler:
    """The compiler for this host.

    Raises:
        UsageError: there is none, `CC` names none, or it does not build what kernels need.
    """
    return _known(os.environ.get("CC", ""), os.environ.get("PATH", ""))


@functools.lru_cache(maxsize=8)
def _known(asked: str, _path: str) -> CCompiler:
    compiler = _introduced(_asked(asked) if asked.strip() else _found())
    _try(compiler)
    return compiler


def _introduced(command: tuple[str, ...]) -> CCompiler:
    version = _said((*command, "--version")).splitlines()
    machine = _said((*command, "-dumpmachine")).strip()
    return CCompiler(command, version[0].strip() if version else command[0], machine)


def find_cross_compiler(target: Target) -> CCompiler | None:
    """GCC for the machine of a profile, if it is installed here: ``TRIPLE-gcc``."""
    place = shutil.which(f"{_gnu(target.mtriple or '')}-gcc")
    return None if place is None else _introduced((place,))


def _gnu(triple: str) -> str:
    """GNU's name of a machine by LLVM's."""
    return re.sub(r"^armv\d\w*", "arm", triple.replace("-unknown-", "-"))


def _found() -> tuple[str, ...]:
    for name in ("cc", "gcc", "clang"):
        if (place := shutil.which(name)) is not None:
            return (place,)
    raise UsageError("there is no C compiler: cc, gcc and clang are not in the PATH", GET)


def _asked(text: str) -> tuple[str, ...]:
    """What `CC` says, as a command.

    Raises:
        UsageError: it is no command, or its program does not exist or cannot be executed.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"CC={text!r} is no command: {error}", GET) from error
    place = shutil.which(words[0])
    if place is None:
        file = Path(words[0])
        what = "cannot be executed" if file.exists() else "does not exist, or is not in the PATH"
        raise UsageError(f"CC={text!r}: {words[0]} {what}", GET)
    return (str(Path(place).absolute()), *words[1:])


def _said(command: tuple[str, ...], given: str | None = None) -> str:
    try:
        done = subprocess.run(
            command, input=given, capture_output=True, text=True, timeout=_SECONDS, check=False,
            env={**os.environ, "LC_ALL": "C"},
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError(f"the C compiler {command[0]}: {error}", GET) from error
    if done.returncode:
        said = (done.stderr.strip() or "no message").splitlines()[0][:300]
        raise UsageError(f"the C compiler {command[0]} is of no use: {said}", GET)
    return done.stdout


def _try(compiler: CCompiler) -> None:
    """Sees that it knows GNU C, which the generated sources are in, and that it links."""
    with tempfile.TemporaryDirectory(prefix="edgekernelbench-cc-") as folder:
        file = Path(folder) / "trial.c"
        file.write_text(_TRIAL)
        out = Path(folder) / "trial.so"
        options = ("-std=gnu11", "-O2", "-shared", "-fPIC", "-o", str(out), str(file))
        _said((*compiler.command, *options))
        if not out.exists():
            said = f"the C compiler {compiler.command[0]} is of no use: it makes no library"
            raise UsageError(said, GET)


def flags(machine: str, target: Target) -> tuple[str, ...]:
    """Options for code of a target: optimised, no freedom that LLVM's code has not, and all that
    the processor has.

    Args:
        machine: the triple that the compiler builds for.
    """
    kind = ("-fno-trapping-math", "-fno-math-errno", "-ffp-contract=off")
    # Calls of memset and memcpy keep small arrays in memory.
    own = "-fno-tree-loop-distribute-patterns"
    return ("-std=gnu11", "-O3", "-fopenmp-simd", *kind, own, "-w", *_machine(machine, target))


def _machine(machine: str, target: Target) -> tuple[str, ...]:
    """What says which processor it is; LLVM's names are GCC's, but for what is left out here."""
    name = target.mcpu if target.mtriple is not None else "native"
    extra = [word for word in target.mattr if re.fullmatch(r"[+-][\w.-]+", word)]
    if machine.startswith("aarch64"):
        added = "".join(f"+{'no' if w[0] == '-' else ''}{w[1:]}" for w in extra)
        return (f"-mcpu={name}{added}",) if name else ()
    if machine.startswith("arm"):
        vectors = ("-mfpu=neon-vfpv4",) if "+neon" in extra else ()
        return (*((f"-mcpu={name}",) if name else ()), *vectors)
    if not machine.startswith(("x86_64", "i686")):
        return ()
    switches = tuple(f"-m{'no-' if word[0] == '-' else ''}{word[1:]}" for word in extra)
    width = ("-mprefer-vector-width=512",) if target.vector_bits >= 512 else ()
    return (*((f"-march={name}",) if name else ()), *width, *switches)


@functools.lru_cache(maxsize=16)
def macros(compiler: CCompiler, options: tuple[str, ...]) -> frozenset[str]:
    """Names that the compiler defines under some options: what it takes the processor to have."""
    text = _said((*compiler.command, *options, "-dM", "-E", "-x", "c", "-"), "")
    return frozenset(line.split()[1].split("(")[0] for line in text.splitlines() if line)


def c_target() -> Target:
    """The target ``c``: this host's processor, by way of its C compiler.

    Raises:
        UsageError: see `find_compiler`.
    """
    compiler, host = find_compiler(), host_target()
    update = {
        "name": "c",
        "backend": "c",
        "description": f"{host.description}; {compiler.version}",
    }
    return fitted(host.model_copy(update=update), compiler)


def by_c(target: Target) -> Target:
    """A profile's processor by way of a C compiler: ``c:NAME``. Its own may know fewer
    instructions than the profile names; then it refuses the source.

    Raises:
        UsageError: it is no processor.
    """
    if target.backend != "llvm":
        raise UsageError(
            f"target {target.name!r} is no processor: C is for those",
            "name a profile with the backend llvm, or c for this host",
        )
    if target.mtriple is None:
        target = target.model_copy(update={"mtriple": find_compiler().machine})
    return target.model_copy(update={"name": f"c:{target.name}", "backend": "c"})


def fitted(target: Target, compiler: CCompiler) -> Target:
    """The target with no instruction that the compiler does not know: it may be older."""
    known = macros(compiler, flags(compiler.machine, target))
    features = tuple(f for f in target.features if _MACROS.get(f, "") in known)
    return target.model_copy(update={"features": features})


_MACROS = {
    "avx512vnni": "__AVX512VNNI__", "avx512vl": "__AVX512VL__", "avxvnni": "__AVXVNNI__",
    "avxvnniint8": "__AVXVNNIINT8__", "avx512bw": "__AVX512BW__", "avx2": "__AVX2__",
    "sse2": "__SSE2__", "dotprod": "__ARM_FEATURE_DOTPROD",
    "i8mm": "__ARM_FEATURE_MATMUL_INT8",
}  # fmt: skip
"""CPU features that kernels have instructions for, and what a C compiler defines where it has
them."""
