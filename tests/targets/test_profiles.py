"""Device profiles: those that come along, what is refused, and how one becomes a target."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator.evaluator import Evaluator
from edgekernelbench.targets import cuda, host, opencl
from edgekernelbench.targets.profiles import places
from edgekernelbench.targets.profiles.load import ProfileError, parse_profile
from edgekernelbench.targets.profiles.schema import Profile
from edgekernelbench.targets.registry import find_target, list_targets
from tests.targets.test_opencl import MALI, device

SHIPPED = ("adreno-730", "jetson-orin-nano", "mali-g710", "nvidia-h200", "pocl", "raspberry-pi-4",
           "raspberry-pi-5")  # fmt: skip
MINE = """version: 1
name: mine
description: A board of mine
backend: opencl
cores: 4
limits:
  memory: 512 MiB
  threads: 128
  shared: 16 KiB
transport:
  kind: none
sources:
  - {of: ["*"], kind: own, says: I built it}
"""


@pytest.fixture(autouse=True)
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(places.VARIABLE, str(tmp_path / "profiles"))
    (tmp_path / "profiles").mkdir()
    return tmp_path / "profiles"


def changed(**values: Any) -> str:
    """The text with keys set (a.b by ``a__b``), or removed by None."""
    data = yaml.safe_load(MINE)
    for key, value in values.items():
        part, *path = data, *key.split("__")
        for step in path[:-1]:
            part = part[step]
        if value is None:
            del part[path[-1]]
        else:
            part[path[-1]] = value
    return yaml.safe_dump(data, sort_keys=False)


# ---------------------------------------------------------------- those that come along
@pytest.mark.parametrize("name", SHIPPED)
def test_each_number_that_comes_along_is_cited(name: str) -> None:
    found = places.find_profile(name)
    assert found is not None and found.shipped
    cited = {key for source in found.profile.sources for key in source.of}
    assert cited == set(found.profile.numbers())
    assert all(source.kind != "own" and source.title for source in found.profile.sources)


def test_all_that_come_along_are_listed() -> None:
    listing = list_targets()
    assert {found.profile.name for found in listing.profiles} == set(SHIPPED)
    assert listing.problems == ()


def test_a_profile_is_a_target_for_code() -> None:
    target = find_target("raspberry-pi-5")
    assert (target.mtriple, target.mcpu, target.threads) == ("aarch64-linux-gnu", "cortex-a76", 4)
    assert target.cache_bytes == (64 << 10, 512 << 10, 2 << 20)
    assert [(peak.of, peak.rate, peak.source) for peak in target.peaks] == [
        ("bandwidth", 17e9, "vendor")
    ]
    jetson = find_target("jetson-orin-nano").gpu
    assert jetson is not None and (jetson.arch, jetson.shared_optin_bytes) == ("sm_87", 163 << 10)


@pytest.mark.parametrize("name", ["raspberry-pi-5", "jetson-orin-nano", "mali-g710"])
def test_running_says_in_one_line_what_is_missing(name: str) -> None:
    with pytest.raises(UsageError, match="there is no transport to the device") as raised:
        Evaluator(find_target(name))
    assert "ekb explain" in raised.value.help and "\n" not in raised.value.message


def test_unknown_names_suggest() -> None:
    with pytest.raises(UsageError, match="target 'rasberry-pi5' is unknown") as raised:
        find_target("rasberry-pi5")
    assert raised.value.help.startswith("did you mean raspberry-pi-5?")


# ---------------------------------------------------------------- a user's own
def test_own_profiles_by_name_and_by_path(own: Path, tmp_path: Path) -> None:
    (own / "mine.yaml").write_text(MINE)
    target = find_target("mine")
    assert target.gpu is not None and target.gpu.max_threads == 128
    elsewhere = tmp_path / "other.yaml"
    elsewhere.write_text(MINE)
    assert find_target(str(elsewhere)) == target
    assert {p.profile.name for p in list_targets().profiles} == {*SHIPPED, "mine"}


def test_names_and_files_agree(own: Path) -> None:
    (own / "other.yaml").write_text(MINE)
    with pytest.raises(UsageError, match="is called 'mine'"):
        find_target("other")
    assert any("is called 'mine'" in line for line in list_targets().problems)
    (own / "raspberry-pi-5.yaml").write_text(MINE)
    with pytest.raises(UsageError, match="two profiles are called 'raspberry-pi-5'"):
        find_target("raspberry-pi-5")


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none.yaml: cannot be read \(No such file"):
        find_target(str(tmp_path / "none.yaml"))
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="not UTF-8"):
        find_target(str(tmp_path / "bytes.yaml"))


def test_a_pipe_is_not_waited_for(own: Path) -> None:
    os.mkfifo(own / "pipe.yaml")
    (own / "endless.yaml").symlink_to("/dev/zero")
    problems = "\n".join(list_targets().problems)
    assert "pipe.yaml: cannot be read (no plain file)" in problems
    assert "endless.yaml: cannot be read (no plain file)" in problems
    with pytest.raises(UsageError, match="no plain file"):
        find_target("pipe")


# ---------------------------------------------------------------- what is refused
REFUSED: tuple[tuple[str, str, int, str, str], ...] = (
    ("", "E701", 1, "there is no mapping", "version: 1"),
    ("- a\n- b\n", "E701", 1, "there is no mapping", "version: 1"),
    (MINE + "cores: 5\n", "E701", 14, "`cores` stands twice", "keep one"),
    (MINE + "x: &a [1]\ny: *a\n", "E701", 14, "anchors and aliases", "write it out"),
    (MINE + "x: !!python/object:os.system {}\n", "E701", 14, "tag", "leave the tag out"),
    (MINE + "x: {\n", "E701", 15, "no YAML", "quotes"),
    (MINE + f"x: {'[' * 20}{']' * 20}\n", "E701", 14, "nested too deeply", ""),
    (MINE + f"x: {'9' * 5000}\n", "E701", 14, "more than 40 characters", ""),
    (MINE + "x: '" + "y" * (64 << 10) + "'\n", "E701", 1, "too long", ""),
    (MINE.replace("cores:", "corse:"), "E702", 5, "`corse` is no key", "did you mean `cores`?"),
    (MINE.replace("memory:", "memroy:"), "E702", 7, "is no key", "did you mean `memory`?"),
    (MINE.replace("backend: opencl\n", ""), "E702", 1, "`backend` is missing", "add it"),
    (MINE.replace("512 MiB", "0"), "E703", 7, "limits.memory: input should be greater", "leave"),
    (MINE.replace("128", "0"), "E703", 8, "limits.threads: input should be greater", "leave"),
    (MINE.replace("128", "-1"), "E703", 8, "limits.threads", "leave the key out"),
    (MINE.replace("128", "yes"), "E703", 8, "limits.threads", "leave the key out"),
    (MINE.replace("128", ".inf"), "E703", 8, "limits.threads", "leave the key out"),
    (MINE.replace("512 MiB", "512 MeB"), "E703", 7, "a size is a number of bytes", "leave"),
    (MINE.replace("512 MiB", "9999999 GiB"), "E703", 7, "limits.memory", "leave"),
    (MINE.replace("backend: opencl", "backend: metal"), "E703", 4, "backend", ""),
    (MINE.replace("name: mine", "name: ../x"), "E707", 2, "name: string should match", ""),
    (MINE.replace("name: mine", "name: llvm"), "E707", 2, "always there", "another name"),
    (MINE.replace("kind: none", "kind: rpc"), "E706", 11, "transport.kind", "say `none`"),
    (MINE.replace("kind: none", "kind: local"), "E706", 10, "which device is it?", "add `device:`"),
    (changed(limits__registers=64), "E704", 10, "says nothing of a target", "leave it out"),
    (changed(vector_bits=128), "E704", 17, "`vector_bits` says nothing", "leave it out"),
    (changed(limits__shared=None), "E704", 4, "`limits.shared` is missing", "add `limits.shared`"),
    (changed(limits__buffer="1 GiB"), "E703", 10, "is above limits.memory", "part of"),
    (changed(caches=[2048, 1024]), "E703", 18, "from the first level", "sort"),
    (changed(sources=[]), "E705", 5, "`cores` has no source", "kind: own"),
    (MINE.replace('"*"', "coers"), "E705", 13, "a source of `coers`", "did you mean `cores`?"),
    (MINE.replace("kind: own", "kind: vendor"), "E705", 13, "without title", "`title:`"),
)  # fmt: skip


@pytest.mark.parametrize(("text", "code", "line", "says", "help"), REFUSED)
def test_what_is_wrong_is_shown_with_its_line(
    text: str, code: str, line: int, says: str, help: str
) -> None:
    with pytest.raises(ProfileError) as raised:
        parse_profile(text, "mine.yaml")
    assert raised.value.message.startswith(f"mine.yaml:{line}:")
    assert f" {code}: " in raised.value.message and says in raised.value.message
    assert help in raised.value.help and "docs/adding-a-device.md" in raised.value.help


def test_all_that_is_wrong_is_said() -> None:
    text = MINE.replace("128", "0").replace("512 MiB", "0").replace("cores:", "corse:")
    with pytest.raises(ProfileError, match="and 2 more") as raised:
        parse_profile(text, "mine.yaml")
    codes = sorted(diagnostic.rule.code for diagnostic in raised.value.diagnostics)
    assert codes == ["E702", "E703", "E703"]


PIECES = ("", "\n", ": ", "- ", "{", "]", "'", "\t", "0", "-1", "&a", "*a", "!!x", "~", "1e999",
          "\0", "ä", "999999999999999999999")  # fmt: skip


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_damaged_texts_are_refused_or_read_and_never_more(data: st.DataObject) -> None:
    shipped = sorted(Path(places.__file__).parent.glob("data/*.yaml"))
    text = data.draw(st.sampled_from([MINE, *(file.read_text() for file in shipped)]))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text)))
        until = data.draw(st.integers(at, min(len(text), at + 12)))
        piece = data.draw(st.sampled_from(PIECES) | st.text(max_size=5))
        text = text[:at] + piece + text[until:]
    try:
        assert isinstance(parse_profile(text, "damaged.yaml"), Profile)
    except ProfileError as error:
        assert error.message.startswith("damaged.yaml:") and "\n" not in error.message


# ---------------------------------------------------------------- a device that is here
LOCAL = MINE.replace("kind: none", "kind: local\n  device: mali")


def test_the_smaller_number_counts_where_the_device_is_here(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opencl, "devices", lambda: (MALI,))
    (own / "mine.yaml").write_text(LOCAL.replace("16 KiB", "64 KiB"))
    target = find_target("mine")
    assert target.opencl == MALI and not target.unreachable and target.gpu is not None
    assert (target.memory_bytes, target.gpu.max_threads) == (512 << 20, 128)
    assert target.gpu.shared_bytes == MALI.local_bytes < 64 << 10


def test_another_device_leaves_code(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opencl, "devices", lambda: (device("X", "Adreno"),))
    (own / "mine.yaml").write_text(LOCAL)
    target = find_target("mine")
    assert target.opencl is None
    with pytest.raises(UsageError, match="no OpenCL device is called 'mali'"):
        Evaluator(target)
    (own / "mine.yaml").write_text(LOCAL.replace("  shared: 16 KiB\n", ""))
    with pytest.raises(UsageError, match="no OpenCL device") as raised:
        find_target("mine")
    assert "leaves limits.shared to the driver" in raised.value.help


def test_another_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    here = host.host_target().model_copy(update={"description": "Raspberry Pi 5 Model B Rev 1.0"})
    monkeypatch.setattr(host, "host_target", lambda: here)
    target = find_target("raspberry-pi-5")
    assert target.mtriple is None and not target.unreachable
    assert target.threads == min(4, here.threads)
    assert find_target("raspberry-pi-4").mtriple is not None


def test_a_named_nvidia_device_is_not_here(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = cuda._Found(devices=(), missing="there is no CUDA driver: no such file")
    monkeypatch.setattr(cuda, "devices", lambda: nothing)
    assert "there is no CUDA driver" in find_target("nvidia-h200").unreachable
