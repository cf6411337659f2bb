"""Differential fuzzing: `python -m tests.fuzz --help` is the long form, the tests the short one."""
