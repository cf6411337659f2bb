"""Kernels as C source for the system's C compiler."""

from edgekernelbench.compilers.c.compiler import CCompiler as CCompiler
