"""The tests of ../test_semantics.py, on what the C compiler makes of the same loop programs."""

from tests.compilers.test_semantics import *  # noqa: F403
