"""Products of matrices, of matrix and vector, and linear layers."""

from edgekernelbench.suite.patterns.matmul import linear, products, vectors  # noqa: F401
