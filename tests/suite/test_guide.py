"""docs/adding-a-pattern.md shows code that really is in the suite."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

from edgekernelbench.suite import load_suite, patterns

GUIDE = Path(__file__).parents[2] / "docs" / "adding-a-pattern.md"


def test_code_in_the_guide_is_the_suites():
    sources = "".join(
        file.read_text(encoding="utf-8")
        for file in sorted(Path(patterns.__path__[0]).rglob("*.py"))
    )
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) >= 3
    for block in blocks:
        for part in re.split(r"\n\n\n", block.strip()):
            assert part in sources, part


def test_the_guides_row_is_the_tables():
    definition = load_suite().definitions["layer_norm_last"]
    text = GUIDE.read_text(encoding="utf-8")
    assert f"`{definition.flops_formula}`" in text
    assert f"`{definition.accumulation}`" in text
    assert f"`{definition.tolerance}`" in text
    assert ";".join(i.name for i in definition.inputs if i.const) == "gamma;beta"


def test_the_guide_tells_of_every_column():
    text = GUIDE.read_text(encoding="utf-8")
    data = resources.files("edgekernelbench.suite") / "data"
    for kind in ("patterns", "workloads"):
        header = (data / kind / "normalization.csv").read_text(encoding="utf-8").splitlines()[0]
        missing = [column for column in header.split(",") if f"`{column}`" not in text]
        assert not missing, kind
