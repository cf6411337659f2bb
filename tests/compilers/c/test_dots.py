"""Dot products of bytes, instruction set by instruction set, by the C compiler."""
