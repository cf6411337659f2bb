"""What of this machine's files a child needs to see: programs, libraries, and little else.

Never on the list: the user's home, the working folder, caches, records, other children's folders.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path

import edgekernelbench

_SYSTEM = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store",
    "/system", "/vendor", "/apex",
    "/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d",
    "/etc/localtime", "/etc/OpenCL", "/etc/nvidia",
    "/sys/devices/system", "/sys/fs/cgroup", "/sys/kernel/mm/transparent_hugepage",
    "/proc/self", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/version",
    "/proc/filesystems", "/proc/sys/vm", "/proc/sys/kernel",
)  # fmt: skip
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")

_DRIVERS = ("/etc", "/opt", "/proc", "/sys", "/run/nvidia-persistenced", "/var/lib/nvidia")
_DRIVER_DEVICES = ("/dev", "/proc/self/task")
"""A driver opens what its maker pleased; CUDA's gives its threads names or does not start."""

_LIBRARIES = ("LD_LIBRARY_PATH", "OCL_ICD_VENDORS", "OPENCL_VENDOR_PATH", "CUDA_HOME", "CUDA_PATH")


def readable(drivers: bool) -> tuple[str, ...]:
    """Files and folders that any child may read. Call it once what is wanted has been imported.

    Args:
        drivers: of a process that loads drivers of devices.
    """
    found = [*_python(), *_imported(), *_compilers()]
    for name in _LIBRARIES:
        found += [place for place in os.environ.get(name, "").split(os.pathsep) if place]
    # `/proc/self` must stay what it is: each child has its own.
    return (*_SYSTEM, *(_DRIVERS if drivers else ()), *_outermost(found))


def _outermost(places: Iterable[str]) -> Iterator[str]:
    """The places, resolved, without those below others. One that holds the user's home or the
    working folder is no place of programs only, and is left out."""
    private = (Path.home().resolve(), Path.cwd())
    kept: list[Path] = []
    for place in sorted({Path(place).resolve() for place in places}):
        holds = any(folder.is_relative_to(place) for folder in private)
        if not holds and not any(place.is_relative_to(above) for above in kept):
            kept.append(place)
            yield str(place)


def writable(drivers: bool) -> tuple[str, ...]:
    """Devices, and the like, that any child may read and write. To be opened by that child."""
    return _DRIVER_DEVICES if drivers else _DEVICES


def listable(drivers: bool) -> tuple[str, ...]:
    """Folders of which any child may read the names: drivers walk down from the root."""
    return ("/",) if drivers else ()


def _python() -> Iterator[str]:
    """The interpreter, what is installed for it, and this package."""
    yield from (sys.prefix, sys.base_prefix, sys.exec_prefix)
    for name in ("stdlib", "platstdlib", "purelib", "platlib"):
        yield sysconfig.get_path(name)
    yield str(Path(edgekernelbench.__file__).parent)
    yield from filter(None, sys.path)


def _imported() -> Iterator[str]:
    """Where the packages lie that have been imported; plug-ins may come from anywhere."""
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file and "." not in name:
            path = Path(file)
            yield str(path.parent if path.stem == "__init__" else path)


def homes(packages: Iterable[str]) -> tuple[str, ...]:
    """Where packages lie that have yet to be imported."""
    found = (importlib.util.find_spec(name) for name in sorted(packages))
    return tuple(
        place
        for spec in found
        if spec is not None
        for place in spec.submodule_search_locations or [spec.origin]
        if place
    )


@functools.cache
def _compilers() -> tuple[str, ...]:
    """A compiler outside of the system's folders, with what lies beside it."""
    programs = (os.environ.get("CC", "cc").split()[:1] or ["cc"])[0], "ld", "nvcc"
    found = (shutil.which(program) for program in programs)
    return tuple(str(Path(place).resolve().parent.parent) for place in found if place)
