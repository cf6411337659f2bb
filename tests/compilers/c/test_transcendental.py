"""The tests of ../test_transcendental.py, on what the C compiler makes of these programs."""

from tests.compilers.test_transcendental import *  # noqa: F403
