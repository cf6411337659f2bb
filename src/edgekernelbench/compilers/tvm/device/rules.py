"""Rules that code for a device can break."""

from __future__ import annotations

from edgekernelbench.ir.diagnostics import Rule

HOST_CODE = Rule(
    "E610", "the host side of a device kernel is loops, branches and launches over known sizes"
)
ON_HOST = Rule("E611", "all work of a device kernel stands in loops bound to its threads")
LAUNCHES = Rule("E612", "one call of a kernel starts a bounded number of device functions")
WORK_GROUP = Rule("E613", "a work group keeps within what the device can run")
DEVICE_COMPILER = Rule("E614", "the device's compiler accepts the generated source")
GRID = Rule("E615", "a grid keeps within what the device can run")
