"""The tests of ../test_fast.py, on what the C compiler makes of the same loop programs."""

from tests.compilers.test_fast import *  # noqa: F403
