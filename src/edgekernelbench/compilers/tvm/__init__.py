"""Apache TVM as the compiler: loop programs become TIR, one to one, and a shared library.

Importing this package does not import TVM; compiling does.
"""

from edgekernelbench.compilers.tvm.compiler import TvmCompiler

__all__ = ["TvmCompiler"]
