"""The short form of `benchmarks/kills.py`: a dozen evaluations under random kills."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import kills


@pytest.mark.parametrize("name", list(kills.PARTS))
def test_nothing_is_lost_or_doubled(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kills, "WORKLOADS", kills.WORKLOADS[:2])
    told = kills.run_part(name, tmp_path, epochs=3, longest=1.0)
    assert told["complaints"] == [], told
    assert told["records"] == told["attempts"] == 6
    assert sum(told["kills"].values()) >= 1, "killed nothing, proved nothing"


def test_what_is_wrong_is_found(tmp_path: Path) -> None:
    """The audit of a folder whose records were tampered with."""
    from edgekernelbench.records.read import RECORDS
    from tests.factories import record

    part = kills.Part(tmp_path, 2, 1.0, kills.random.Random(), ("a__01",))
    (part.run / "kernels").mkdir(parents=True)
    (tmp_path / "tmp").mkdir()
    one = record("a__01", agent="canonical").model_dump_json() + "\n"
    (part.run / RECORDS).write_text(one * 2 + '{"id": "half"')
    told = " | ".join(kills.audit(part)["complaints"])
    for words in ("not a complete record", "recorded twice", "1 lost", "1 doubled"):
        assert words in told
