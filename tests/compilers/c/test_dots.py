"""Dot products of bytes, instruction set by instruction set, by the C compiler."""

from tests.compilers.test_dots import test_results_on_this_host_are_exact as test_results_are_exact
