"""A disk that is full or read-only ends a run with one line; what was stored before stays."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections import namedtuple
from pathlib import Path
from typing import Any

import pytest

from edgekernelbench.agents.canonical import CanonicalAgent
from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator import room
from edgekernelbench.evaluator.model import EvaluationStatus
from edgekernelbench.records.read import RECORDS, read_records
from edgekernelbench.records.store import RunStore
from edgekernelbench.runs.run import Silent, run
from tests.evaluator.fakes import FakeTask, make_evaluator
from tests.factories import record
from tests.runs.test_run import FIRST, SECOND, Evaluator, Named, Session, config

SETTINGS = {"agent": "tuner"}

FILLS = """
import resource, sys
from pathlib import Path
from edgekernelbench.records.store import RunStore
from edgekernelbench.errors import UsageError
from tests.factories import record
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
with RunStore.open(Path(sys.argv[1]), {"agent": "tuner"}, resume=False) as store:
    try:
        for number in range(1000):
            store.append(record(f"k__{number:04}"))
    except UsageError as error:
        print(number, error.message)
"""


def _child(code: str, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *args],
        capture_output=True, text=True, timeout=120, cwd=Path(__file__).parents[2], check=False,
    )  # fmt: skip


def test_a_file_that_may_not_grow_keeps_what_it_has(tmp_path: Path) -> None:
    ended = _child(FILLS, str(tmp_path / "run"))
    number, told = ended.stdout.split(maxsplit=1)
    assert f"cannot be written (File too large); the {number} records before are intact" in told
    loaded = read_records(tmp_path / "run" / RECORDS)
    assert len(loaded.records) == int(number) > 5 and loaded.problems == ()
    with RunStore.open(tmp_path / "run", SETTINGS, resume=True) as store:
        store.append(record(f"k__{int(number):04}"))
    assert len(read_records(tmp_path / "run" / RECORDS).records) == int(number) + 1


def test_what_cannot_even_be_taken_back_is_set_aside_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with RunStore.open(tmp_path, SETTINGS, resume=False) as store:
        store.append(record("a__01"))
        real = os.write

        def full(fd: int, data: bytes) -> int:
            real(fd, data[:10])
            raise OSError(errno.ENOSPC, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(os, "write", full)
            patch.setattr(os, "ftruncate", _refuse)
            with pytest.raises(UsageError, match=r"No space left.*the 1 records before"):
                store.append(record("b__01"))
        store.append(record("c__01"))
    loaded = read_records(tmp_path / RECORDS)
    assert [r.task.workload for r in loaded.records] == ["a__01", "c__01"]
    assert len(loaded.problems) == 1, "the cut line is told, and ruins no other"


def _refuse(*_: object, **__: object) -> None:
    raise OSError(errno.EROFS, "Read-only file system")


def test_a_full_device_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edgekernelbench.runs.run.build_ahead", lambda *_: ())
    monkeypatch.setattr("edgekernelbench.runs.run.as_task", lambda workload: Named(workload.id))
    evaluator: Any = Evaluator()
    folder = tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr(Session, "renew", lambda _: (folder / RECORDS).symlink_to("/dev/full"))
        with pytest.raises(UsageError, match="No space left on device"):
            run(config(FIRST, SECOND), folder, False, evaluator, Silent())
    (folder / RECORDS).unlink()
    records = run(config(FIRST, SECOND), folder, True, evaluator, Silent())
    assert [r.task.workload for r in records] == [FIRST.id, SECOND.id]


def test_a_text_that_cannot_be_stored_leaves_nothing_half_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with RunStore.open(tmp_path, SETTINGS, resume=False) as store:
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", _refuse)
            for keep in (
                lambda: store.keep_kernel("ab" * 32, "kernel k"),
                lambda: store.keep_text("?"),
            ):
                with pytest.raises(UsageError, match=r"Read-only.*the 0 records before"):
                    keep()
        assert not [*(tmp_path / "kernels").iterdir(), *(tmp_path / "texts").iterdir()]
        store.keep_kernel("ab" * 32, "kernel k")


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EROFS])
def test_an_agent_that_meets_a_full_disk_stops_the_run(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgekernelbench.runs.run.build_ahead", lambda *_: ())
    evaluator: Any = Evaluator()

    def attempt(*_: object) -> None:
        raise OSError(code, os.strerror(code), "scratch")

    monkeypatch.setattr(CanonicalAgent, "attempt", attempt)
    with pytest.raises(UsageError, match="scratch: cannot be written"):
        run(config(FIRST), tmp_path / "out", False, evaluator, Silent())
    assert not (tmp_path / "out" / RECORDS).exists(), "the attempt is left to do"


OPENS = """
import os, sys
from pathlib import Path
from edgekernelbench.records.store import RunStore
from edgekernelbench.errors import UsageError
from tests.factories import record
folder = Path(sys.argv[1])
store = None if sys.argv[2] == "new" else RunStore.open(folder, {"agent": "tuner"}, resume=True)
if os.geteuid() == 0:
    os.chmod(folder, 0o555)
    os.setuid(65534)
try:
    if store is None:
        RunStore.open(folder / "run", {"agent": "tuner"}, resume=False)
    else:
        store.keep_kernel("ab" * 32, "kernel k")
except UsageError as error:
    print(error.message)
"""


@pytest.mark.parametrize("which", ["new", "begun"])
def test_a_read_only_folder_is_told(which: str, tmp_path: Path) -> None:
    folder = tmp_path / "there"
    for path in (tmp_path, *tmp_path.parents):
        if path != Path("/") and os.access(path, os.W_OK) and path.stat().st_uid == os.getuid():
            path.chmod(path.stat().st_mode | 0o055)
    folder.mkdir(mode=0o755)
    if which == "begun":
        with RunStore.open(folder, SETTINGS, resume=False) as store:
            store.append(record("a__01"))
        (folder / "kernels").chmod(0o555)
    else:
        folder.chmod(0o555)
    ended = _child(OPENS, str(folder), which)
    assert "cannot be written (Permission denied)" in ended.stdout, ended.stderr
    if which == "begun":
        assert "the 1 records before are intact" in ended.stdout
        assert len(read_records(folder / RECORDS).records) == 1


Usage = namedtuple("Usage", "total used free")


def test_without_room_nothing_is_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler that cannot write its output would make a good kernel a bad one."""
    with make_evaluator(tmp_path) as evaluator, evaluator.session(FakeTask()) as session:
        free = [room.NEEDED - 1]
        monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(1 << 40, 0, free[0]))
        with pytest.raises(UsageError, match=r"64\.0 MiB are left, 64 MiB are needed"):
            session.evaluate("correct")
        free[0] = room.NEEDED
        assert session.evaluate("correct").status is EvaluationStatus.CORRECT


def test_a_bad_verdict_on_a_disk_that_filled_meanwhile_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with make_evaluator(tmp_path) as evaluator, evaluator.session(FakeTask()) as session:
        left = [room.NEEDED] * 2
        monkeypatch.setattr(
            shutil, "disk_usage", lambda _: Usage(1 << 40, 0, left.pop() if left else 0)
        )
        with pytest.raises(UsageError, match="are needed"):
            session.evaluate("wrong")
        left[:] = [room.NEEDED] * 2
        assert session.evaluate("correct").status is EvaluationStatus.CORRECT


def test_a_baseline_that_is_lost_to_a_full_disk_is_nobodys_gain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with make_evaluator(tmp_path, baselines=("broken",)) as evaluator:
        left = [room.NEEDED] * 2
        monkeypatch.setattr(
            shutil, "disk_usage", lambda _: Usage(1 << 40, 0, left.pop() if left else 0)
        )
        with evaluator.session(FakeTask()) as session:
            with pytest.raises(UsageError, match="are needed"):
                session.evaluate("correct")
            left[:] = [room.NEEDED] * 4
            assert session.evaluate("correct").status is EvaluationStatus.CORRECT


LIMITED = """
import resource
from pathlib import Path
from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator.room import require_room
require_room(Path("/tmp"))
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
try:
    require_room(Path("/tmp"))
except UsageError as error:
    print(error.message)
"""


def test_files_that_may_not_grow_are_no_room() -> None:
    """Baselines are larger than most kernels: they alone would be lost."""
    assert "files may be 1.0 MiB long, 64 MiB are needed" in _child(LIMITED).stdout
