"""The profile of the machine this runs on.

Everything is read from the operating system; only LLVM's name of the CPU comes from TVM, asked
once per machine in a child process and remembered in the user's cache folder.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

from edgekernelbench.errors import UsageError
from edgekernelbench.files import write_whole
from edgekernelbench.targets.model import Target

_FEATURES = {
    "sse2": "sse2",
    "avx2": "avx2",
    "avx512bw": "avx512bw",
    "avx512vl": "avx512vl",
    "avx512_vnni": "avx512vnni",
    "avx_vnni": "avxvnni",
    "avx_vnni_int8": "avxvnniint8",
    "asimddp": "dotprod",
    "i8mm": "i8mm",
}
"""Flags of the operating system, with LLVM's names, of what the lowering has instructions for."""

_VECTOR_FLAGS = (("avx512f", 512), ("avx2", 256), ("avx", 256), ("asimd", 128), ("neon", 128))


@functools.lru_cache(maxsize=1)
def host_target() -> Target:
    """The target ``llvm``: this host, with the cores this process may use."""
    cpuinfo = _read(Path("/proc/cpuinfo"))
    cores = os.sched_getaffinity(0)
    return Target(
        name="llvm",
        backend="llvm",
        description=_description(cpuinfo),
        mcpu=llvm_cpu_name(cpuinfo),
        features=features(cpuinfo),
        threads=physical_cores(cores),
        vector_bits=vector_bits(cpuinfo),
        cache_bytes=cache_sizes(min(cores)) or (32 << 10, 1 << 20),
        memory_bytes=memory_bytes(),
    )


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _description(cpuinfo: str) -> str:
    names = re.search(r"^(?:model name|Model)\s*:\s*(.+)$", cpuinfo, re.MULTILINE)
    return names.group(1).strip() if names else platform.machine()


def vector_bits(cpuinfo: str) -> int:
    """SIMD width by the CPU's feature flags; 128 when they tell nothing."""
    flags = _flags(cpuinfo)
    return next((bits for flag, bits in _VECTOR_FLAGS if flag in flags), 128)


def features(cpuinfo: str) -> tuple[str, ...]:
    """What of `Target.features` the CPU's flags tell."""
    flags = _flags(cpuinfo)
    return tuple(name for flag, name in _FEATURES.items() if flag in flags)


def _flags(cpuinfo: str) -> set[str]:
    found = re.search(r"^(?:flags|Features)\s*:\s*(.+)$", cpuinfo, re.MULTILINE)
    return set(found.group(1).split()) if found else set()


def physical_cores(cpus: set[int]) -> int:
    """Physical cores behind a set of logical CPUs, bounded by the container's CPU quota."""
    packages = set()
    for cpu in cpus:
        topology = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology")
        core = _read(topology / "core_id").strip() or str(cpu)
        packages.add((_read(topology / "physical_package_id").strip(), core))
    return max(1, min(len(packages), core_quota() or len(packages)))


def core_quota() -> int | None:
    """Cores' worth of time that the container's quota allows, at least 1; None without a quota."""
    quota = _read(Path("/sys/fs/cgroup/cpu.max")).split()
    if len(quota) == 2 and quota[0].isdigit() and quota[1].isdigit():
        return max(1, int(quota[0]) // int(quota[1]))
    return None


def cache_sizes(cpu: int) -> tuple[int, ...]:
    """Bytes of the data caches of a CPU, from L1 to the last level; empty when unknown."""
    sizes: dict[int, int] = {}
    for index in sorted(Path(f"/sys/devices/system/cpu/cpu{cpu}/cache").glob("index*")):
        if _read(index / "type").strip() in ("Data", "Unified"):
            size = re.fullmatch(r"(\d+)([KMG]?)", _read(index / "size").strip())
            level = _read(index / "level").strip()
            if size and level.isdigit():
                sizes[int(level)] = int(size[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[size[2]]
    return tuple(sizes[level] for level in sorted(sizes))


def memory_bytes() -> int:
    """Memory that processes here may take: of the machine, or less if the container says so."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = _read(Path("/sys/fs/cgroup/memory.max")).strip()
    return min(total, int(limit)) if limit.isdigit() else total


def host_as(mcpu: str) -> Target:
    """This host with code for another CPU of its architecture (``x86-64-v3``): what that has and
    this host has not cannot be run here.

    Raises:
        UsageError: LLVM knows no such CPU, or its vectors are wider than this host's.
    """
    host = host_target()
    found = _llvm_features(mcpu)
    if found is None:
        raise UsageError(f"LLVM knows no CPU {mcpu!r} here", f"this host is {host.mcpu}")
    bits = 512 if "avx512f" in found else 256 if "avx" in found else 128
    if bits > host.vector_bits:
        raise UsageError(
            f"{mcpu} has vectors of {bits} bits, and this host of {host.vector_bits}",
            "name a CPU whose code runs here",
        )
    known = tuple(name for name in _FEATURES.values() if name in found)
    return host.model_copy(update={"mcpu": mcpu, "vector_bits": bits, "features": known})


# ------------------------------------------------------------------ what LLVM says
_ASK = """
import sys
sys.modules["torch"] = None
import tvm
print(tvm.get_global_func("target.llvm_get_system_cpu")())
"""


def llvm_cpu_name(cpuinfo: str) -> str | None:
    """What LLVM calls this CPU (``znver4``), or None when it does not know or TVM is missing."""
    stable = re.sub(r"^(cpu MHz|bogomips|BogoMIPS|processor|apicid|core id|initial apicid)\s*:.*$",
                    "", cpuinfo, flags=re.MULTILINE)  # fmt: skip
    key = hashlib.sha256((stable + platform.machine()).encode()).hexdigest()[:16]
    store = cache_folder() / "host" / f"{key}.json"
    with contextlib.suppress(OSError, ValueError, KeyError):
        return json.loads(store.read_text())["mcpu"]
    name = _ask_llvm()
    if name is not None:
        with contextlib.suppress(OSError):
            store.parent.mkdir(parents=True, exist_ok=True)
            write_whole(store, json.dumps({"mcpu": name}) + "\n")
    return name


def _ask_llvm() -> str | None:
    word = _last_word(_ASK)
    return None if word == "generic" else word


_ASK_FEATURES = """
import sys
sys.modules["torch"] = None
from tvm.target import Target, codegen
assert codegen.llvm_is_valid_cpu(sys.argv[1], codegen.llvm_get_system_triple())
target = Target({"kind": "llvm", "mcpu": sys.argv[1]})
found = [f for f in sys.argv[2].split(",") if codegen.llvm_cpu_has_features(f, target)]
print(",".join(["base", *found]))
"""


def _llvm_features(mcpu: str) -> set[str] | None:
    """The features of a CPU by name; None if LLVM knows none of that name."""
    wanted = ",".join(("avx", "avx512f", *_FEATURES.values()))
    word = _last_word(_ASK_FEATURES, mcpu, wanted)
    return None if word is None else set(word.split(","))


def _last_word(script: str, *arguments: str) -> str | None:
    """What a script that uses TVM prints last; None if it fails. Importing TVM here is slow."""
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    words = done.stdout.split()
    return words[-1] if done.returncode == 0 and words else None


def cache_folder() -> Path:
    """Where things that can be found out again are kept: ``$XDG_CACHE_HOME/edgekernelbench``."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "edgekernelbench"
