"""The one exception that means "the command cannot be carried out" and reaches a user.

Faulty kernels are not errors in this sense: they yield diagnostics and statuses, which are values.
Anything else that is raised is a bug of ours.
"""

from __future__ import annotations


class UsageError(Exception):
    """Something the caller named cannot be used.

    Args:
        message: one line: the thing, where it was named, and what is wrong with it.
        help: one line: the way out.
    """

    def __init__(self, message: str, help: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.help = help
