"""Estimation, motion, planning and control of robots."""

from edgekernelbench.suite.patterns.robotics import (  # noqa: F401
    control,
    dynamics,
    estimation,
    kinematics,
    sampling,
)
