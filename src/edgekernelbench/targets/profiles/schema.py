"""The form of a device profile, version 1."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from edgekernelbench.targets.model import Backend, RatedPeak
from edgekernelbench.targets.profiles.quantities import Bytes, Count, Rate

NAME = r"[a-z0-9][a-z0-9._-]{0,63}"
_Text = Annotated[str, Field(min_length=1, max_length=1000)]
_Word = Annotated[str, Field(pattern=r"^[\w.+-]{1,64}$")]
_Dtype = Literal["f16", "f32", "f64", "s8", "u8", "s16", "u16", "s32", "u32", "s64", "bool"]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Architecture(_Part):
    """What the code generator is told. CPUs take the first four, NVIDIA's GPUs ``sm``.

    Attributes:
        triple: LLVM's name of machine and system (``aarch64-linux-gnu``).
        mcpu: LLVM's name of the CPU (``cortex-a76``).
        mattr: LLVM features to switch on or off (``+fullfp16``).
        features: of `targets.model.Target.features`.
        sm: NVIDIA's name of the architecture (``sm_87``).
        opencl: version of OpenCL that the driver offers (``3.0``).
        extensions: of OpenCL that the driver offers.
    """

    triple: _Word | None = None
    mcpu: _Word | None = None
    mattr: tuple[Annotated[str, Field(pattern=r"^[+-][\w.-]{1,64}$")], ...] = ()
    features: tuple[_Word, ...] = ()
    sm: Annotated[str, Field(pattern=r"^sm_\d{2,3}[a-z]?$")] | None = None
    opencl: Annotated[str, Field(pattern=r"^\d\.\d$")] | None = None
    extensions: tuple[_Word, ...] = ()


class Limits(_Part):
    """What a kernel must keep within. A limit that is not there is not checked, or is what the
    driver says, where there is one.

    Attributes:
        memory: inputs, outputs, packed constants and workspace together.
        buffer: the largest single one of them.
        workspace: temporary memory of one call.
        code: machine code.
        threads: of one block (work items of a group).
        shared: shared (local) memory of a block, allocated statically.
        shared_optin: the same in all, where the launch asks for it.
        registers: of a thread.
        registers_block: of all threads of a block.
    """

    memory: Bytes | None = None
    buffer: Bytes | None = None
    workspace: Bytes | None = None
    code: Bytes | None = None
    threads: Count | None = None
    shared: Bytes | None = None
    shared_optin: Bytes | None = None
    registers: Count | None = None
    registers_block: Count | None = None


class Peak(_Part):
    """The most that the device can do of one thing.

    Attributes:
        of: ``bandwidth`` (bytes read and written), or the dtype of multiply-adds that count 2.
        rate: a second.
        source: ``vendor``: derived from its documents; ``measured``: by kernels in the IR; ``own``:
            whoever wrote the profile vouches for it.
        spread: half width of the 95 % interval of the measured median, relative.
        working_set: bytes that the measuring kernel touches, of a bandwidth.
    """

    of: Literal["bandwidth"] | _Dtype
    rate: Rate
    source: Literal["vendor", "measured", "own"]
    spread: Annotated[float, Field(ge=0, le=10)] | None = None
    working_set: Bytes | None = None

    def rated(self) -> RatedPeak:
        return RatedPeak(**self.model_dump())


class Source(_Part):
    """Where numbers come from.

    Attributes:
        of: keys of the profile (``cores``, ``limits.memory``, ``peaks``), or ``*`` for all that
            no other source names; a document of a vendor names each.
        kind: ``vendor``: a document; ``driver``, ``system``: what these say of a device of this
            kind; ``measured``; ``own``: whoever wrote the profile vouches for it.
        says: what it says, in our words.
    """

    of: Annotated[tuple[_Text, ...], Field(min_length=1)]
    kind: Literal["vendor", "driver", "system", "measured", "own"]
    says: _Text
    title: _Text | None = None
    url: Annotated[str, Field(pattern=r"^https://\S{4,300}$")] | None = None


class Transport(_Part):
    """How programs reach the device.

    Attributes:
        kind: ``none``: not at all, code is generated and billed only; ``local``: it is this
            machine, or in it.
        device: words that its name contains, in any case: the CPU's as the system says it, an
            OpenCL device's platform and name, an NVIDIA device's name.
    """

    kind: Literal["none", "local"]
    device: Annotated[str, Field(pattern=r"^[\w .()@+-]{1,200}$")] | None = None


class Profile(_Part):
    """One device.

    Attributes:
        cores: that candidates and baselines may use: of a CPU, or units of a GPU.
        vector_bits: SIMD width.
        caches: data caches from the first level to the last; of a core where it has its own.
        warp: threads of a GPU that run in step.
    """

    version: Literal[1]
    name: Annotated[str, Field(pattern=rf"^{NAME}$")]
    description: _Text
    backend: Backend
    architecture: Architecture = Architecture()
    cores: Count | None = None
    vector_bits: Literal[64, 128, 256, 512, 1024, 2048] | None = None
    caches: tuple[Bytes, ...] | None = None
    warp: Annotated[int, Field(ge=1, le=128, strict=True)] | None = None
    dtypes_missing: tuple[_Dtype, ...] | None = None
    limits: Limits = Limits()
    peaks: tuple[Peak, ...] = ()
    transport: Transport
    sources: tuple[Source, ...] = ()

    def numbers(self) -> tuple[str, ...]:
        """Keys of what must have a source: everything that is a fact of the device."""
        top = ("cores", "vector_bits", "caches", "warp", "dtypes_missing")
        found = [key for key in top if getattr(self, key) is not None]
        found += ["peaks"] if self.peaks else []
        for part in ("architecture", "limits"):
            values = getattr(self, part).model_dump(exclude_defaults=True)
            found += [f"{part}.{key}" for key in values]
        return tuple(found)
