"""What `ekb suite check` prints of rules that were not tried or not applied."""

from __future__ import annotations

from collections import Counter

from typer.testing import CliRunner

from edgekernelbench.cli.main import app
from edgekernelbench.cli.suitecheck import reasons


def test_small_checks_show_the_rules_that_they_try_and_why_others_were_not_applied() -> None:
    words = ["suite", "check", "cholesky_batched__02", "--small", "--jobs", "1"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    rules = {line.split("│")[1].strip() for line in result.output.splitlines() if "│" in line}
    assert {"row", "canonical", "independent"} <= rules
    assert not rules & {"control", "compiled", "precision"}
    assert "not applied: twin 1 (ONNX has no factorisations)" in result.output
    assert result.output.rstrip().endswith("0 of 1 workloads broken")


def test_the_commonest_reasons_come_first() -> None:
    skipped = Counter({("twin", why): n for n, why in enumerate("abcde", 1)})
    skipped["precision", "other"] = 9
    assert reasons(skipped, "precision") == "other"
    assert reasons(Counter({("twin", ""): 1}), "twin") == "no reason is given"
    assert reasons(skipped, "twin") == "5: e; 4: d; 3: c; 2 more reasons"
