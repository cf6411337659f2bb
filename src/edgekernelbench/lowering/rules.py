"""Rules of the schedule (E4xx) and memory (E5xx) layers."""

from __future__ import annotations

from edgekernelbench.ir.diagnostics import Rule

UNKNOWN_STAGE = Rule("E401", "a schedule names stages of the compute layer")
