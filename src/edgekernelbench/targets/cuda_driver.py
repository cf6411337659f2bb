"""The CUDA driver's library, as far as this project calls it. Needs no toolkit and no package."""

from __future__ import annotations

import ctypes
import functools
import uuid
from ctypes import POINTER, c_char_p, c_float, c_int, c_size_t, c_uint, c_uint64, c_void_p
from typing import Any

LIBRARY = "libcuda.so.1"

_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cuInit": (c_uint,),
    "cuDriverGetVersion": (POINTER(c_int),),
    "cuGetErrorName": (c_int, POINTER(c_char_p)),
    "cuGetErrorString": (c_int, POINTER(c_char_p)),
    "cuDeviceGetCount": (POINTER(c_int),),
    "cuDeviceGet": (POINTER(c_int), c_int),
    "cuDeviceGetName": (c_char_p, c_int, c_int),
    "cuDeviceGetUuid": (c_char_p, c_int),
    "cuDeviceTotalMem_v2": (POINTER(c_size_t), c_int),
    "cuDeviceGetAttribute": (POINTER(c_int), c_int, c_int),
    "cuDevicePrimaryCtxRetain": (POINTER(c_void_p), c_int),
    "cuCtxSetCurrent": (c_void_p,),
    "cuModuleLoadData": (POINTER(c_void_p), c_char_p),
    "cuModuleGetFunction": (POINTER(c_void_p), c_void_p, c_char_p),
    "cuFuncSetAttribute": (c_void_p, c_int, c_int),
    "cuMemAlloc_v2": (POINTER(c_uint64), c_size_t),
    "cuMemFree_v2": (c_uint64,),
    "cuMemsetD8Async": (c_uint64, ctypes.c_ubyte, c_size_t, c_void_p),
    "cuMemcpyHtoDAsync_v2": (c_uint64, c_void_p, c_size_t, c_void_p),
    "cuMemcpyDtoHAsync_v2": (c_void_p, c_uint64, c_size_t, c_void_p),
    "cuStreamCreate": (POINTER(c_void_p), c_uint),
    "cuStreamSynchronize": (c_void_p,),
    "cuLaunchKernel": (c_void_p, *(c_uint,) * 7, c_void_p, c_void_p, c_void_p),
    "cuLaunchHostFunc": (c_void_p, c_void_p, c_void_p),
    "cuEventCreate": (POINTER(c_void_p), c_uint),
    "cuEventRecord": (c_void_p, c_void_p),
    "cuEventElapsedTime": (POINTER(c_float), c_void_p, c_void_p),
}

_NEWER = {"cuDeviceGetUuid": "cuDeviceGetUuid_v2", "cuEventElapsedTime": "cuEventElapsedTime_v2"}
"""Names under which a driver may have a function that does the same; taken where there is one."""

OUT_OF_MEMORY = 2


class DriverMissing(Exception):
    """There is no CUDA driver on this machine, or it has no device it can use; says which."""


class CudaError(RuntimeError):
    """A call of the driver failed. ``code`` is its number (``CUresult``)."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Driver:
    """The loaded and initialised library.

    Raises:
        DriverMissing: it cannot be loaded, or does not start.
    """

    def __init__(self) -> None:
        try:
            self._library = ctypes.CDLL(LIBRARY)
        except OSError as error:
            raise DriverMissing(f"there is no CUDA driver: {error}") from None
        self._functions = {name: self._found(name) for name in _SIGNATURES}
        try:
            self.call("cuInit", 0)
        except CudaError as error:
            raise DriverMissing(f"the CUDA driver does not start: {error}") from None

    def _found(self, name: str) -> Any:
        names = (_NEWER.get(name, name), name)
        found = next((f for n in names if (f := getattr(self._library, n, None))), None)
        if found is None:
            raise DriverMissing(f"{LIBRARY} is too old: it has no {name}")
        found.argtypes, found.restype = _SIGNATURES[name], c_int
        return found

    def function(self, name: str) -> Any:
        """The library's own function, which returns a code for `check`: for calls in a hurry."""
        return self._functions[name]

    def call(self, name: str, *arguments: Any) -> None:
        """Calls a function of the library.

        Raises:
            CudaError: it returned anything but success.
        """
        self.check(name, self._functions[name](*arguments))

    def check(self, name: str, code: int) -> None:
        """Raises `CudaError` unless a call succeeded."""
        if code != 0:
            raise CudaError(code, f"{name}: {self._words(code)}")

    def made(self, name: str, kind: Any, *arguments: Any) -> Any:
        """What a function writes through its first parameter, a pointer to a ``kind``."""
        result = kind()
        self.call(name, ctypes.byref(result), *arguments)
        return result.value

    def _words(self, code: int) -> str:
        found = []
        for function in ("cuGetErrorName", "cuGetErrorString"):
            text = c_char_p()
            known = self._functions[function](code, ctypes.byref(text)) == 0
            if known and text.value is not None:
                found.append(text.value.decode(errors="replace"))
        return ", ".join(found) or f"error {code}"

    # ------------------------------------------------------------ devices
    def devices(self) -> tuple[int, ...]:
        """Handles of the devices, in the driver's order."""
        count = self.made("cuDeviceGetCount", c_int)
        return tuple(self.made("cuDeviceGet", c_int, ordinal) for ordinal in range(count))

    def uuid(self, device: int) -> str:
        """As other tools of the vendor print it: ``GPU-`` and a UUID."""
        raw = ctypes.create_string_buffer(16)
        self.call("cuDeviceGetUuid", raw, device)
        return f"GPU-{uuid.UUID(bytes=raw.raw)}"

    def name(self, device: int) -> str:
        text = ctypes.create_string_buffer(256)
        self.call("cuDeviceGetName", text, len(text), device)
        return text.value.decode(errors="replace").strip()

    def attribute(self, number: int, device: int) -> int:
        """One of ``CU_DEVICE_ATTRIBUTE_...``, by its number."""
        return self.made("cuDeviceGetAttribute", c_int, number, device)


@functools.cache
def driver() -> Driver:
    """This process's driver. Loading it starts threads: never before a fork.

    Raises:
        DriverMissing: see `Driver`.
    """
    return Driver()
