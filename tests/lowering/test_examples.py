"""Every example program under the default rules: the loop program agrees with the interpreter."""

from __future__ import annotations

import pytest

from .support import DATA, check, load_text

EXAMPLES = sorted((DATA / "examples").glob("*.ekir"))

SIZES = {
    "mobilenet_v1_classifier": {"H": 8, "W": 8},
    "espcn_super_resolution": {"H": 2, "W": 2, "r": 1},
    "histogram_u8": {"L": 30},
}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_example_under_default_rules(path):
    kernel, program = load_text(path.read_text(), SIZES.get(path.stem))
    check(kernel, program)
