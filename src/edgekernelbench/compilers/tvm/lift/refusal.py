"""Why something cannot be lifted."""

from __future__ import annotations


class Refused(Exception):
    """The model has a part that the kernel IR, or this lift, cannot say. The text says which."""
