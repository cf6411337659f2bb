"""The page that a bundle carries: what it is, and how to test and use it on the device."""

from __future__ import annotations

from edgekernelbench.deploy.architecture import OPENCL, Architecture
from edgekernelbench.deploy.manifest import BundleManifest, Parameter

_PAGE = """# {name}

A compute kernel for {target}, made by `ekb deploy`. It needs Linux on {architecture}, a C library
with POSIX threads, and no Python.

## Is it right here?

    make selftest

builds the library and a small program with the C compiler of this machine (`CC=` names another),
runs the kernel on the inputs in `golden/`, with one thread and with all, and holds its outputs
against what they should be. {prebuilt}

    make bench      # the same, and the median time of 200 calls

On another kind of machine, with a cross compiler and an emulator:

    make selftest RUN={emulator}

If the program says that the processor lacks an instruction, the kernel was built for another one
({cpu}): make the bundle again with a device profile that fits.

## Use it

```c
#include "{name}.h"

{prototype};
```

{parameters}

Arrays are dense and row-major, begin at a multiple of 64 bytes (`ekb_alloc`), and outputs share no
memory with anything. Constants are built in: {constants}. Build and link:

    make
    cc -Iinclude program.c build/lib{name}.a -lm -pthread

`ekb_set_threads(n)`, or the environment variable `EKB_THREADS`, decides how many threads kernels
use; all processors if neither does. Several bundles fit into one program.

## What is in it

`manifest.json` has the hash of each file, the device profile, versions of the tools, and the bill:
{code} of code, {constants_bytes} of constants, {workspace} of workspace a call.
Measured: {measured}.

The C files are under Apache-2.0 (`LICENSE`); the kernel, `{file}`, is its author's.
"""


_OPENCL_PAGE = """# {name}

A compute kernel for {target}, made by `ekb deploy`: OpenCL source, and the C that runs it. It needs
Linux, a C compiler, and the device's driver with its `libOpenCL.so.1`; no headers and no Python.

## Is it right here?

    make selftest

builds the library and a small program, runs the kernel on the inputs in `golden/`, and holds its
outputs against what they should be. The driver compiles the source at the first call.

    make bench      # the same, and the median time of 200 calls, copies to and fro included

`EKB_OPENCL_DEVICE="words"` chooses a device by words of its platform's and its own name; else it is
the first GPU, or the first device of all. `EKB_OPENCL_LIBRARY` names the library, where it is in no
usual place.

## Use it

```c
#include "{name}.h"

{prototype};
```

{parameters}

Arrays lie in the host's memory and are copied; they are dense and row-major, begin at a multiple of
64 bytes (`ekb_alloc`), and outputs share no memory with anything. Constants are built in:
{constants}; they are copied to the device, and packed there, at the first call. Calls from several
threads run one after another. `ekb_opencl_release` of `ekb_opencl.h` gives all memory back. Build
and link:

    make
    cc -Iinclude program.c build/lib{name}.a -lm -pthread -ldl

## What is in it

`manifest.json` has the hash of each file, the device profile, versions of the tools, and the bill:
{constants_bytes} bytes of constants, {workspace} of workspace a call. The device's source is
`src/{name}.cl`; its launches are the tables of `src/{name}.c`.
Measured: {measured}.

The C files are under Apache-2.0 (`LICENSE`); the kernel, `{file}`, is its author's.
"""


def readme(manifest: BundleManifest, prototype: str, architecture: Architecture) -> str:
    """The text of ``README.md``."""
    name, code = manifest.kernel.name, manifest.bill.code_bytes
    measured = "not yet; `make bench` does it here"
    if found := manifest.measured:
        measured = f"{found.median_us:.4g} us a call on {found.target}, {found.threads} threads"
    prebuilt = "There is no prebuilt program: " + (manifest.toolchain.not_prebuilt or "none") + "."
    if manifest.toolchain.c_compiler is not None:
        prebuilt = "Without a compiler, `./prebuilt/selftest` does the same; it needs no library."
    page = _OPENCL_PAGE if architecture is OPENCL else _PAGE
    return page.format(
        name=name,
        target=manifest.target.get("description") or manifest.target["name"],
        architecture=architecture.name,
        prebuilt=prebuilt,
        emulator=architecture.emulator,
        cpu=manifest.target.get("mcpu", architecture.name),
        prototype=prototype,
        parameters="\n".join(_line(p) for p in manifest.parameters),
        constants=", ".join(f"`{p.name}`" for p in manifest.prepared) or "there are none",
        code="an unknown amount" if code is None else f"{code} bytes",
        constants_bytes=manifest.bill.constants_bytes,
        workspace=manifest.bill.workspace_bytes,
        measured=measured,
        file=manifest.kernel.file,
    )


def _line(parameter: Parameter) -> str:
    shape = list(parameter.shape)
    return f"- `{parameter.c_name}`: {parameter.role}, {parameter.dtype}{shape}"
