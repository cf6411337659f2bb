"""The page on device profiles: its example is a profile, its table is what comes along."""

from __future__ import annotations

import re
from pathlib import Path

from edgekernelbench.targets.profiles.load import parse_profile
from edgekernelbench.targets.profiles.places import list_profiles
from edgekernelbench.targets.profiles.resolve import target_of

PAGE = (Path(__file__).parents[2] / "docs" / "adding-a-device.md").read_text()


def test_the_example_is_a_target() -> None:
    [text] = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    target = target_of(parse_profile(text, "page"), "page")
    assert (target.mcpu, target.workspace_bytes, target.code_bytes) == (
        "cortex-a53", 64 << 20, 256 << 10
    )  # fmt: skip
    assert target.peaks[0].rate == 3.2e9


def test_the_table_names_what_comes_along() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"`([\w-]+)`", row.split("|")[1])}
    assert named == {found.profile.name for found in list_profiles()[0] if found.shipped}
