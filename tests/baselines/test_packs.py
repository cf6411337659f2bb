"""Schedule packs: files, and which schedule fits a target."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from edgekernelbench.baselines import packs, schedules
from edgekernelbench.baselines.listing import listing
from edgekernelbench.baselines.packs import Book
from edgekernelbench.baselines.schedules import CpuSchedule, GpuSchedule, Schedule, identity
from edgekernelbench.baselines.tuning import open_pack
from edgekernelbench.errors import UsageError
from edgekernelbench.targets.device import CudaDevice
from edgekernelbench.targets.gpus import cuda_target
from edgekernelbench.targets.host import host_target
from edgekernelbench.targets.model import Target
from edgekernelbench.targets.registry import find_target

TARGET = host_target().model_copy(update={"mcpu": "znver3", "vector_bits": 256, "threads": 2})


def schedule(**changes: Any) -> CpuSchedule:
    values: dict[str, Any] = {
        "function": "0123456789abcdef",
        "name": "matmul",
        "workload": "matmul__01",
        "arch": schedules.arch_of(TARGET),
        "cpu": "znver3",
        "host": "znver3",
        "vector_bits": 256,
        "threads": 2,
        "compiler": schedules.compiler_version(),
        "trials": 8,
        "wanted": 8,
        "guide": "random",
        "us": 12.5,
        "trace": [[["GetSBlock", [], ["C", "main"], ["b0"]]], [[0, [4, 8]], [1, 0.5]]],
    }
    return CpuSchedule(**(values | changes))


def write(path: Path, *schedules: Schedule) -> Path:
    path.write_text("".join(s.model_dump_json() + "\n" for s in schedules))
    return path


def test_round_trip(tmp_path: Path) -> None:
    kept = (schedule(), schedule(threads=4), schedule(trace=None, us=None, reason="nothing ran"))
    path = tmp_path / "a.jsonl"
    with open_pack(path, TARGET) as pack:
        for one in kept:
            pack.add(one)
    assert packs.read_pack(path) == (kept[2], kept[1])  # a later line of the same identity counts
    with open_pack(path, TARGET) as pack:
        assert pack.known("0123456789abcdef") == kept[2]
        assert pack.known("0" * 16) is None


def test_an_unfinished_last_line_is_passed_over_and_cut(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", schedule())
    with path.open("a") as file:
        file.write('{"version": 1, "funct')
    assert packs.read_pack(path) == (schedule(),)
    with open_pack(path, TARGET) as pack:
        pack.add(schedule(threads=4))
    assert packs.read_pack(path) == (schedule(), schedule(threads=4))


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("no json", "Invalid JSON"),
        ("[]", "object"),
        ('{"version": 2}', "version"),
        (schedule().model_dump_json().replace("0123456789abcdef", "xyz"), "function"),
        (schedule().model_dump_json()[:-1] + ', "more": 1}', "more"),
        ("[" * 100_000, ""),
        ("\xff", ""),
    ],
)
def test_a_malformed_pack_is_refused(line: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    text = schedule().model_dump_json() + "\n" + line + "\n"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(UsageError) as caught:
        packs.read_pack(path)
    assert caught.value.message.startswith(f"{path}:2: no schedule of a pack")
    assert told in caught.value.message
    assert "ekb baseline tune" in caught.value.help


def test_a_pack_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        packs.read_pack(tmp_path / "absent.jsonl")


def test_two_processes_do_not_write_one_pack(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with (
        open_pack(path, TARGET),
        pytest.raises(UsageError, match="another process"),
        open_pack(path, TARGET),
    ):
        pass


def test_where_packs_lie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    one, other = write(folder / "b.json"), write(tmp_path / "a.jsonl")
    write(folder / "notes.txt")
    places = (folder, other, tmp_path / "absent", folder)
    monkeypatch.setenv(packs.PACKS_VARIABLE, os.pathsep.join(map(str, places)))
    assert packs.pack_files()[-2:] == (one.resolve(), other.resolve())
    monkeypatch.delenv(packs.PACKS_VARIABLE)
    monkeypatch.setenv("EDGEKERNELBENCH_HOME", str(tmp_path))
    assert packs.user_folder() == tmp_path / "packs"


# ---------------------------------------------------------------- choice
FUNCTION = "0123456789abcdef"


def choice(*given: Schedule, target: Target = TARGET) -> tuple[Schedule, str] | None:
    found = [Book(order, target).find(FUNCTION) for order in (given, given[::-1])]
    assert found[0] == found[1]
    return None if found[0] is None else (found[0].schedule, found[0].kinship)


def test_nothing_fits() -> None:
    assert choice(schedule(compiler="0.1"), schedule(function="f" * 16)) is None


def test_the_nearest_cpu_is_chosen() -> None:
    own, kin = schedule(), schedule(cpu="haswell", wanted=512, us=1.0)
    wide, narrow = schedule(cpu="skylake", vector_bits=512), schedule(cpu="k8", vector_bits=128)
    foreign = schedule(arch="riscv64", cpu="u74", vector_bits=256, wanted=512)
    assert choice(foreign, wide, kin, own) == (own, "own")
    assert choice(foreign, wide, kin) == (kin, "kin")
    assert choice(foreign, wide) == (wide, "transferred")
    assert choice(narrow, wide) == (narrow, "transferred")
    assert choice(foreign) == (foreign, "transferred")


def test_threads_and_trials_decide_between_schedules_of_one_cpu() -> None:
    threads, longer = schedule(threads=4, wanted=512), schedule(wanted=64, us=13.0)
    assert choice(threads, schedule(), longer) == (longer, "own")


def test_features_of_a_profile_are_part_of_its_name() -> None:
    changed = TARGET.model_copy(update={"mattr": ("-fma",)})
    assert choice(schedule(), target=changed) == (schedule(), "kin")


def gpu(**changes: Any) -> GpuSchedule:
    values = schedule().model_dump(exclude={"arch", "cpu", "host", "vector_bits", "threads"})
    machine = {"backend": "cuda", "arch": "sm_90", "device": "NVIDIA H200", "driver": "13.0"}
    return GpuSchedule(**(values | machine | changes))


H200 = CudaDevice(
    uuid="GPU-0", name="NVIDIA H200", driver="13.0", arch="sm_90", units=132, clock_mhz=1980,
    memory_clock_mhz=3201, memory_bytes=1 << 37, l2_bytes=50 << 20, shared_bytes=48 << 10,
    shared_optin_bytes=227 << 10, max_threads=1024, block=(1024, 1024, 64),
    grid=(2**31 - 1, 65535, 65535), warp=32, integrated=False,
)  # fmt: skip
HOPPER = cuda_target("sm_90").model_copy(update={"cuda": H200})


def test_schedules_of_gpus_are_chosen_by_architecture() -> None:
    own, kin = gpu(), gpu(device="NVIDIA H100", wanted=512, us=1.0)
    other = gpu(arch="sm_80", device="NVIDIA A100", wanted=512)
    elsewhere = gpu(backend="opencl", arch="NVIDIA H200", wanted=512)
    assert choice(elsewhere, schedule(), other, kin, own, target=HOPPER) == (own, "own")
    assert choice(elsewhere, other, kin, target=HOPPER) == (kin, "kin")
    assert choice(elsewhere, other, target=HOPPER) == (other, "transferred")
    assert choice(elsewhere, schedule(), target=HOPPER) is None
    assert choice(own) is None  # the target is a CPU
    assert choice(own, target=cuda_target("sm_90")) == (own, "kin")


def test_a_pack_may_hold_schedules_of_both_kinds(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with open_pack(path, HOPPER) as pack:
        for one in (gpu(), schedule()):
            pack.add(one)
    assert packs.read_pack(path) == (gpu(), schedule())
    with open_pack(path, HOPPER) as pack:
        assert pack.known(FUNCTION) == gpu() and gpu().identity == identity(FUNCTION, HOPPER)
    assert gpu().origin == "sm_90 (NVIDIA H200)" and schedule().origin.endswith("znver3")


def test_listing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = (
        schedule(),
        schedule(function="1" * 16, cpu="haswell"),
        schedule(function="2" * 16, arch="aarch64"),
        schedule(compiler="0.1"),
    )
    path = write(tmp_path / "a.jsonl", *mine)
    monkeypatch.setenv(packs.PACKS_VARIABLE, str(path))
    found = listing(TARGET)
    row = next(row for row in found.packs if row.path == str(path.resolve()))
    assert (row.schedules, row.own, row.kin, row.transferred, row.useless) == (4, 1, 1, 1, 1)
    names = {row.name: row.scored for row in found.baselines}
    assert names["tvm-tuned"] and not names["tvm-raw"]
    assert all(row.summary.endswith(".") for row in found.baselines)


def test_the_pack_for_gpus_that_ships() -> None:
    (file,) = (path for path in packs.pack_files() if path.name == "cuda-sm90.jsonl")
    lines = packs.read_pack(file)
    found = [line for line in lines if line.trace is not None]
    assert all(isinstance(line, GpuSchedule) and line.arch == "sm_90" for line in lines)
    assert all(line.checked for line in found) and len(found) > 150
    book = Book(lines, cuda_target("sm_90"))
    for line in found:
        chosen = book.find(line.function)
        assert chosen is not None and not chosen.transferred


def test_the_pack_for_opencl_that_ships() -> None:
    (file,) = (path for path in packs.pack_files() if path.name == "opencl-h200.jsonl")
    lines = packs.read_pack(file)
    found = [line for line in lines if line.trace is not None]
    assert all(isinstance(line, GpuSchedule) and line.backend == "opencl" for line in lines)
    assert all(line.checked for line in found) and len(found) >= 150
    book = Book(lines, find_target("opencl"))
    for line in found:
        chosen = book.find(line.function)
        assert chosen is not None and chosen.transferred  # PoCL is another device
