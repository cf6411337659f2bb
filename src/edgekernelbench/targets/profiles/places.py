"""Profiles by name: those that come along, and those in the user's folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from edgekernelbench.errors import UsageError
from edgekernelbench.targets.profiles.load import load_profile
from edgekernelbench.targets.profiles.schema import Profile

VARIABLE = "EDGEKERNELBENCH_PROFILES"
SUFFIXES = (".yaml", ".yml")
_SHIPPED = Path(__file__).parent / "data"


@dataclass(frozen=True, slots=True)
class Found:
    """A profile and the file it stands in."""

    profile: Profile
    file: Path

    @property
    def shipped(self) -> bool:
        return self.file.parent == _SHIPPED


def own_folder() -> Path:
    """Where the user's profiles lie: ``$EDGEKERNELBENCH_PROFILES``, or the folder ``profiles`` of
    this project's settings."""
    chosen = os.environ.get(VARIABLE)
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CONFIG_HOME")
    return (Path(base) if base else Path.home() / ".config") / "edgekernelbench" / "profiles"


def is_path(name: str) -> bool:
    """Whether a target's name says a file."""
    return "/" in name or name.endswith(SUFFIXES)


def profile_names() -> tuple[str, ...]:
    """Names that `find_profile` takes, as the files are called."""
    return tuple(sorted({file.stem for file in _files()}))


def find_profile(name: str) -> Found | None:
    """The profile of that name, or in that file; None where there is none of that name.

    Raises:
        UsageError: it is not right, or two files have the name.
    """
    if is_path(name):
        file = Path(name).expanduser()
        return Found(load_profile(file), file)
    files = [file for file in _files() if file.stem == name]
    if len(files) > 1:
        raise UsageError(
            f"two profiles are called {name!r}: {files[0]} and {files[1]}",
            "rename one of them, or give its path to --target",
        )
    return _named(files[0]) if files else None


def list_profiles() -> tuple[tuple[Found, ...], tuple[str, ...]]:
    """All profiles, and a line for each file that is none."""
    found: list[Found] = []
    problems: list[str] = []
    for file in _files():
        try:
            found.append(_named(file))
        except UsageError as error:
            problems.append(error.message)
    return tuple(found), tuple(problems)


def _named(file: Path) -> Found:
    profile = load_profile(file)
    if profile.name != file.stem:
        raise UsageError(
            f"{file}: the profile in it is called {profile.name!r}",
            f"call the file {profile.name}.yaml: profiles are found by the names of their files",
        )
    return Found(profile, file)


def _files() -> Iterator[Path]:
    for folder in (_SHIPPED, own_folder()):
        if folder.is_dir():
            yield from sorted(file for file in folder.iterdir() if file.suffix in SUFFIXES)
