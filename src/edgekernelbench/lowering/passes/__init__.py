"""Rewritings of the compute layer that never change a result."""
