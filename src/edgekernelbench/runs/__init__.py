"""Running an agent over a subset of the suite."""
