"""What was verified of a run, in words, and the command that verifies it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from edgekernelbench.runs.seal import kept
from edgekernelbench.runs.verify import Verification

Word = Literal["verified", "refuted", "open", "not verified"]


@dataclass(frozen=True, slots=True)
class Standing:
    """Attributes:
    word: the verdict; ``not verified`` where this user made none of these very records.
    told: what it rests on, or why there is none.
    date: day of the verdict, empty without one.
    command: that verifies it; empty where nothing is left to do.
    """

    word: Word
    told: str
    date: str
    command: str


def standing_of(folder: Path) -> Standing:
    """Of the run in a folder. Only a verdict that this user sealed counts.

    Raises:
        UsageError: this user's key cannot be read.
    """
    sealed = kept(folder)
    command = f"ekb verify {shlex.quote(str(folder))} --keep"
    if sealed.trust == "here" and sealed.verification is not None:
        found = sealed.verification
        again = "" if found.verdict == "verified" else command
        return Standing(found.verdict, _rests_on(found), found.date[:10], again)
    told = {
        "none": "",
        "here": "",
        "elsewhere": "the verdict beside it is not of this user",
        "outdated": "its records changed since a verdict",
    }[sealed.trust]
    return Standing("not verified", told, "", command)


def _rests_on(found: Verification) -> str:
    parts = [f"{found.agreed} of {len(found.again)} judged again agree, of {found.judged}"]
    if found.findings:
        parts.append(f"{len(found.findings)} findings in the records")
    differ = sum(one.agrees is False for one in found.again)
    if differ:
        parts.append(f"{differ} differ")
    silent = sum(one.agrees is None for one in found.again)
    if silent:
        parts.append(f"{silent} without a verdict")
    parts.append("statuses only" if found.times else "statuses and speed-ups")
    return "; ".join(parts)
