"""What baselines and schedule packs there are, for people."""

from __future__ import annotations

import importlib
from collections import Counter
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from edgekernelbench.baselines import packs
from edgekernelbench.baselines.registry import BASELINES, load_baseline
from edgekernelbench.baselines.schedules import cpu_of, device_name
from edgekernelbench.targets.model import Target


class _Told(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class BaselineRow(_Told):
    """``scored``: may be ``best``."""

    name: str
    scored: bool
    summary: str


class PackRow(_Told):
    """How many schedules of a pack were tuned for the target's device, for another one of its kind,
    or of another kind, or are of no use to it (those for CPUs to a GPU, those of another version of
    the compiler)."""

    path: str
    schedules: int
    own: int
    kin: int
    transferred: int
    useless: int


class Listing(_Told):
    """See the module. ``device``: beside the CPU, if the target is one."""

    cpu: str
    device: str
    threads: int
    baselines: tuple[BaselineRow, ...]
    packs: tuple[PackRow, ...]


def listing(target: Target) -> Listing:
    """All of it, as it stands for a target.

    Raises:
        UsageError: a pack is damaged.
    """
    rows = tuple(_baseline(name, place) for name, place in BASELINES.items())
    found = tuple(_pack(path, target) for path in packs.pack_files())
    return Listing(
        cpu=cpu_of(target),
        device=device_name(target),
        threads=target.threads,
        baselines=rows,
        packs=found,
    )


def _baseline(name: str, place: str) -> BaselineRow:
    """The summary is the first sentence of the module that defines it."""
    module = importlib.import_module(place.partition(":")[0])
    first = " ".join((module.__doc__ or "").split("\n\n")[0].split())
    return BaselineRow(name=name, scored=load_baseline(place).scored, summary=first)


def _pack(path: Path, target: Target) -> PackRow:
    schedules = packs.read_pack(path)
    uses: Counter[str] = Counter()
    for schedule in schedules:
        choice = packs.Book((schedule,), target).find(schedule.function)
        uses["useless" if choice is None else choice.kinship] += 1
    return PackRow(
        path=str(path),
        schedules=len(schedules),
        own=uses["own"],
        kin=uses["kin"],
        transferred=uses["transferred"],
        useless=uses["useless"],
    )
