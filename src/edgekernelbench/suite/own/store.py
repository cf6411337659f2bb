"""Where own suites lie: a folder each under ``$EDGEKERNELBENCH_HOME`` or the user's data folder."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from edgekernelbench.errors import UsageError
from edgekernelbench.suite.model import Workload
from edgekernelbench.suite.own.manifest import Manifest
from edgekernelbench.suite.rows import first_fault

MANIFEST = "suite.json"
FAMILY = "own"
"""Of all own workloads; the name of the subset of all of them too."""
_STAGING, _REMOVED = ".adding-", ".removing-"
_FRESH_S = 60.0


_placed: list[Path] = []


@contextmanager
def placed(folder: Path) -> Iterator[None]:
    """Inside the block own suites lie in ``folder``, whatever the user's own place is. Holds for
    all threads."""
    _placed.append(folder)
    try:
        yield
    finally:
        _placed.pop()


def home() -> Path:
    """The folder of all own suites; it may not exist yet."""
    if _placed:
        return _placed[-1]
    chosen = os.environ.get("EDGEKERNELBENCH_HOME")
    if chosen:
        return Path(chosen) / "suite"
    base = os.environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local/share") / "edgekernelbench" / "suite"


def folder_of(name: str) -> Path:
    """Where the own suite of that name lies."""
    return home() / name


def names() -> tuple[str, ...]:
    """The own suites there are."""
    try:
        folders = sorted(home().iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return ()
    return tuple(f.name for f in folders if (f / MANIFEST).is_file() and f.name[0] != ".")


def read(name: str) -> Manifest:
    """The own suite of that name.

    Raises:
        UsageError: there is none, or its file is damaged.
    """
    known = names()
    if name not in known:
        told = ", ".join(known) or "none yet; `ekb suite add PATH` makes one"
        raise UsageError(f"no own suite {name!r}", f"own suites: {told}")
    file = folder_of(name) / MANIFEST
    try:
        manifest = Manifest.model_validate_json(file.read_bytes())
    except ValueError as error:
        raise UsageError(
            f"{file}: {first_fault(error)}", f"`ekb suite remove {name}`, then add it again"
        ) from error
    if manifest.name != name:
        raise UsageError(f"{file}: it names itself {manifest.name!r}", "do not rename its folder")
    return manifest


def workloads(name: str | None = None) -> tuple[Workload, ...]:
    """The workloads of one own suite, or of all."""
    chosen = names() if name is None else (name,)
    return tuple(task.workload for suite in chosen for task in read(suite).tasks)


def find(workload: str) -> Workload | None:
    """The own workload of that id; only the suite that its name begins with is read."""
    name = workload.partition("__")[0]  # none holds "__" or ends in "_"
    if name not in names():
        return None
    return next((w for w in workloads(name) if w.id == workload), None)


@contextmanager
def staged(name: str, replace: bool = False) -> Iterator[Path]:
    """A folder that becomes the own suite ``name`` when the block ends without an exception.

    Args:
        replace: in the place of one that has the name.

    Raises:
        UsageError: the folder of own suites cannot be written, or the name is taken.
    """
    try:
        home().mkdir(parents=True, exist_ok=True)
        sweep()
        folder = Path(tempfile.mkdtemp(prefix=_STAGING, dir=home()))
        kept = _locked(folder)
    except OSError as error:
        raise UsageError(
            f"{home()}: cannot be written ({error.strerror})",
            "set EDGEKERNELBENCH_HOME to a folder that can",
        ) from error
    try:
        yield folder
        folder.chmod(0o755)
        if replace and name in names():
            remove(name)
        try:
            folder.rename(home() / name)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            raise taken(name) from error  # another command was quicker
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(kept)


def taken(name: str, where: str = "") -> UsageError:
    """The complaint about an own suite's name that another one has."""
    return UsageError(
        f"{where}there is an own suite {name!r} already",
        f"--replace puts this one in its place; or `ekb suite remove {name}`, or another --name",
    )


def _locked(folder: Path) -> int:
    """An open file that keeps `sweep` from the folder as long as this process lives."""
    handle = os.open(folder, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    return handle


def sweep() -> None:
    """Deletes what commands left behind that were killed."""
    now = time.time()
    for folder in (*home().glob(f"{_STAGING}*"), *home().glob(f"{_REMOVED}*")):
        try:
            if now - folder.stat().st_mtime < _FRESH_S:
                continue  # it may not be locked yet
            handle = os.open(folder, os.O_RDONLY)
        except OSError:
            continue
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            continue
        finally:
            os.close(handle)


def write(folder: Path, manifest: Manifest) -> None:
    (folder / MANIFEST).write_text(manifest.model_dump_json(indent=1) + "\n", encoding="utf-8")


def remove(name: str) -> None:
    """Deletes an own suite, a damaged one too.

    Raises:
        UsageError: there is none of that name.
    """
    if name not in names():
        read(name)
    gone = Path(tempfile.mkdtemp(prefix=_REMOVED, dir=home()))
    (home() / name).rename(gone / name)
    shutil.rmtree(gone)
