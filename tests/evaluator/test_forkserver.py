"""Workers are fresh, limited, and gone when they should be; every way to lose one is told."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from edgekernelbench.evaluator.forkserver import ForkServer, ServerSpec
from edgekernelbench.evaluator.sandbox import Isolation, Limits
from edgekernelbench.evaluator.worker import ChildLost, Worker

LIMITS = Limits(memory_bytes=1 << 30)


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    made = ForkServer(ServerSpec("test", ("tests.evaluator.child_jobs",), {"EKB_SHOWN": "1"}))
    yield made
    made.close()


def start(server: ForkServer, folder: Path, limits: Limits = LIMITS, **payload: object) -> Worker:
    return server.start("tests.evaluator.child_jobs:misbehave", payload, limits, folder)


def gone(pid: int) -> bool:
    """Dead within two seconds; whoever adopted it may leave a zombie."""
    for _ in range(100):
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.02)
    return False


def test_request_reply_and_descriptors(server: ForkServer, tmp_path: Path) -> None:
    fd = os.memfd_create("a")
    os.write(fd, b"first")
    worker = server.start("tests.evaluator.child_jobs:echo", {"job": 1}, LIMITS, tmp_path, [fd])
    reply = worker.request({"x": "é"}, 5, [fd])
    assert reply == {"echo": {"x": "é"}, "payload": {"job": 1}, "texts": ["first", "first"]}
    assert worker.request({"x": 2}, 5)["texts"] == ["first"]
    assert worker.close() is not None
    assert gone(worker.pid)
    os.close(fd)


@pytest.mark.parametrize(
    ("what", "kind"),
    [
        ("exit", "exited"),
        ("segfault", "exited"),
        ("raise", "exited"),
        ("garbage", "bad_reply"),
        ("huge", "bad_reply"),
        ("nan", "bad_reply"),
        ("deep", "bad_reply"),
        ("half", "timeout"),
        ("sleep", "timeout"),
    ],
)
def test_every_loss_is_told_and_the_next_worker_is_right(
    server: ForkServer, tmp_path: Path, what: str, kind: str
) -> None:
    worker = start(server, tmp_path, what=what)
    with pytest.raises(ChildLost) as lost:
        worker.reply(0.5)
    assert lost.value.kind == kind
    assert gone(worker.pid)
    if what == "exit":
        assert lost.value.exit is not None and lost.value.exit.code == 3
        assert "last words" in lost.value.log
    if what == "segfault":
        assert str(lost.value.exit) == "SIGSEGV"
    if what == "raise":
        assert "broken job" in lost.value.log
    again = server.start("tests.evaluator.child_jobs:echo", {}, LIMITS, tmp_path)
    assert again.request({"a": 1}, 5)["echo"] == {"a": 1}
    again.close()
    assert server.starts == 1


def test_orphans_are_killed(server: ForkServer, tmp_path: Path) -> None:
    path = tmp_path / "pid"
    worker = start(
        server, tmp_path, Limits(processes=True, writes=True), what="orphan", path=str(path)
    )
    with pytest.raises(ChildLost) as lost:
        worker.reply(10)
    assert lost.value.kind == "exited"
    assert gone(int(path.read_text()))


def test_limits_hold(server: ForkServer, tmp_path: Path) -> None:
    worker = start(server, tmp_path, what="report")
    assert worker.isolation == Isolation()
    report = worker.reply(5)
    worker.close()
    for what in ("fork", "kill_parent", "network", "exec"):
        assert report[what] == "Operation not permitted", what
    assert report["open_many"] == "Too many open files"
    names = set(report["environment"])
    assert "EKB_SHOWN" in names
    allowed = {"PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "CC", "LC_CTYPE"}
    own = {"EKB_SHOWN", "EDGEKERNELBENCH_CHILD", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"}
    assert names <= allowed | own


def test_temporary_files_have_a_place_that_goes_with_the_worker(
    server: ForkServer, tmp_path: Path
) -> None:
    worker = start(server, tmp_path, Limits(writes=True), what="temporary")
    told = worker.reply(5)
    assert Path(told["folder"]).parent == Path(told["home"]) != Path.home()
    worker.close()
    assert not Path(told["home"]).exists()


def test_memory_limit(server: ForkServer, tmp_path: Path) -> None:
    limits = Limits(memory_bytes=100 << 20)
    fits = start(server, tmp_path, limits, what="memory", bytes=50 << 20)
    assert fits.reply(5) == {"got": 50 << 20}
    fits.close()
    too_much = start(server, tmp_path, limits, what="memory", bytes=200 << 20)
    with pytest.raises(ChildLost) as lost:
        too_much.reply(5)
    assert "MemoryError" in lost.value.log


@pytest.fixture
def spinning(server: ForkServer, tmp_path: Path) -> Iterator[Worker]:
    worker = server.start("tests.evaluator.child_jobs:spin", {}, LIMITS, tmp_path)
    assert worker.request({"a": 1}, 5)["echo"] == {"a": 1}
    yield worker
    worker.close()


def busy_seconds(worker: Worker) -> float:
    return time.clock_gettime((~worker.pid << 3) | 2)  # clock_getcpuclockid(3), on Linux


def test_a_halted_worker_gets_no_processor_until_it_is_asked(spinning: Worker) -> None:
    worked = busy_seconds(spinning)
    for _ in range(3):
        spinning.halt()
        before = busy_seconds(spinning)
        time.sleep(0.1)
        assert spinning.alive and busy_seconds(spinning) - before < 0.01
        assert spinning.request({"a": 2}, 20)["echo"] == {"a": 2}
    assert busy_seconds(spinning) > worked


def test_a_halted_worker_dies_like_any_other(
    spinning: Worker, server: ForkServer, tmp_path: Path
) -> None:
    spinning.halt()
    spinning.close()
    assert gone(spinning.pid)
    other = server.start("tests.evaluator.child_jobs:spin", {}, LIMITS, tmp_path)
    other.halt()
    other.signal(signal.SIGKILL)
    with pytest.raises(ChildLost) as lost:
        other.request({"a": 1}, 5)
    assert lost.value.kind == "exited" and str(lost.value.exit) == "SIGKILL"
    other.halt()
    assert server.starts == 1


def test_a_halted_worker_dies_with_its_server(tmp_path: Path) -> None:
    server = ForkServer(ServerSpec("test", ("tests.evaluator.child_jobs",), {}))
    worker = server.start("tests.evaluator.child_jobs:spin", {}, LIMITS, tmp_path)
    worker.halt()
    assert server.pid is not None
    os.kill(server.pid, signal.SIGKILL)
    assert gone(worker.pid)
    server.close()


def test_a_server_sleeps_through_the_halts_of_its_workers(
    server: ForkServer, spinning: Worker
) -> None:
    assert server.pid is not None
    status = Path(f"/proc/{server.pid}/status")
    before = _switches(status)
    for _ in range(50):
        spinning.halt()
        spinning.request({"a": 1}, 20)
    assert _switches(status) - before < 10


def _switches(status: Path) -> int:
    """How often a process went to sleep."""
    lines = status.read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("voluntary")))


def test_killed_server_is_restarted_and_its_workers_die(tmp_path: Path) -> None:
    server = ForkServer(ServerSpec("test", ("tests.evaluator.child_jobs",), {}))
    worker = start(server, tmp_path, what="sleep")
    pid = server.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(ChildLost) as lost:
        worker.reply(5)
    assert lost.value.kind == "exited"
    assert gone(worker.pid)
    again = server.start("tests.evaluator.child_jobs:echo", {}, LIMITS, tmp_path)
    assert again.request({"a": 1}, 5)["echo"] == {"a": 1}
    assert server.starts == 2
    server.close()
    assert gone(again.pid)


def test_workers_of_a_killed_server_do_not_end_the_next_one(tmp_path: Path) -> None:
    server = ForkServer(ServerSpec("test", ("tests.evaluator.child_jobs",), {}))
    stale = [start(server, tmp_path, what="sleep") for _ in range(3)]
    assert server.pid is not None
    os.kill(server.pid, signal.SIGKILL)
    assert gone(server.pid)
    again = server.start("tests.evaluator.child_jobs:echo", {}, LIMITS, tmp_path)
    began = time.monotonic()
    for worker in stale:
        assert not worker.alive
        worker.close()
    assert time.monotonic() - began < 2, "nobody waits for a process that is long gone"
    assert again.request({"a": 1}, 5)["echo"] == {"a": 1}
    assert server.starts == 2
    server.close()


def test_stopped_server_is_replaced(tmp_path: Path) -> None:
    server = ForkServer(ServerSpec("test", ("tests.evaluator.child_jobs",), {}))
    server.warm()
    assert server.pid is not None
    stopped = server.pid
    os.kill(stopped, signal.SIGSTOP)
    with pytest.raises(ChildLost) as lost:
        server.start("tests.evaluator.child_jobs:echo", {}, LIMITS, tmp_path, timeout=0.5)
    assert lost.value.kind == "server"
    assert gone(stopped)
    worker = server.start("tests.evaluator.child_jobs:echo", {}, LIMITS, tmp_path)
    assert worker.request({"a": 1}, 5)["echo"] == {"a": 1}
    server.close()


def test_server_that_cannot_import_is_an_error() -> None:
    server = ForkServer(ServerSpec("test", ("no_such_module_here",), {}))
    with pytest.raises(ChildLost, match="no_such_module_here"):
        server.warm()


def test_servers_do_without_pytorch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU machine importing PyTorch, which TVM does where it can, starts a thread."""
    (tmp_path / "torch.py").write_text(
        "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    for side in ("run_side", "compile_side"):
        server = ForkServer(ServerSpec(side, (f"edgekernelbench.evaluator.preload:{side}",), {}))
        server.warm()
        server.close()
