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

from edgekernelbench.targets.model import Target

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
    found = re.search(r"^(?:flags|Features)\s*:\s*(.+)$", cpuinfo, re.MULTILINE)
    flags = set(found.group(1).split()) if found else set()
    return next((bits for flag, bits in _VECTOR_FLAGS if flag in flags), 128)


def physical_cores(cpus: set[int]) -> int:
    """Physical cores behind a set of logical CPUs, bounded by the container's CPU quota."""
    packages = set()
    for cpu in cpus:
        topology = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology")
        core = _read(topology / "core_id").strip() or str(cpu)
        packages.add((_read(topology / "physical_package_id").strip(), core))
    quota = _read(Path("/sys/fs/cgroup/cpu.max")).split()
    if len(quota) == 2 and quota[0].isdigit() and quota[1].isdigit():
        return max(1, min(len(packages), int(quota[0]) // int(quota[1])))
    return max(1, len(packages))


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


# ------------------------------------------------------------------ LLVM's name of the CPU
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
            scratch = store.with_suffix(f".{os.getpid()}")
            scratch.write_text(json.dumps({"mcpu": name}) + "\n")
            scratch.replace(store)
    return name


def _ask_llvm() -> str | None:
    done = subprocess.run(
        [sys.executable, "-c", _ASK], capture_output=True, text=True, timeout=120, check=False
    )
    words = done.stdout.split()
    return words[-1] if done.returncode == 0 and words and words[-1] != "generic" else None


def cache_folder() -> Path:
    """Where things that can be found out again are kept: ``$XDG_CACHE_HOME/edgekernelbench``."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "edgekernelbench"
