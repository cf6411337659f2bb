"""Every example program, by the C compiler, against the interpreter in the declared dtypes."""

from tests.compilers.test_examples import test_example as test_example
from tests.compilers.test_examples import test_layered_example as test_layered_example
