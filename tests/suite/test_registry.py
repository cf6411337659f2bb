"""Patterns that are declared nowhere, or not where they are looked for."""

from __future__ import annotations

import pytest

from edgekernelbench.suite.patterns.registry import arguments, find_pattern


@pytest.mark.parametrize(
    ("family", "told"),
    [
        ("pooling", "is not declared in suite/patterns/pooling.py"),
        ("normalization", "file that suite/patterns/normalization/__init__.py imports; a new"),
        ("knitting", "there is no suite/patterns/knitting.py and no folder suite/patterns/knit"),
    ],
)
def test_what_is_declared_nowhere(family: str, told: str) -> None:
    with pytest.raises(LookupError) as caught:
        find_pattern(family, "nowhere")
    assert told in str(caught.value)


def test_an_unknown_parameter_names_the_function_and_what_there_is() -> None:
    with pytest.raises(LookupError, match="the twin of p asks for unknown z; there are x, M"):
        arguments(lambda g, x, z: x, {"x": 0, "M": 1}, "the twin of p", skip=1)
