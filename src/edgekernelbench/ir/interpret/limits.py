"""Sizes that trade memory, call overhead and speed of the interpreter. None changes a result."""

from __future__ import annotations

# Elements of one temporary when an expression is evaluated lane by lane.
PLAIN_LANES = 1 << 18
# Elements of all lets of a stage together, and of a temporary at least.
LET_LANES = 1 << 23
LEAST_LANES = 1 << 12
# Elements of a factor of a matrix product.
FACTOR_LANES = 1 << 21
# Lanes below which a sum of products is not worth a matrix product.
LEAST_PRODUCT = 1 << 12
# Lanes of a batch of tiny matrices that may be multiplied as one array.
BATCH_LANES = 1 << 22
# Bytes of the stages kept apart for each iteration of a vectorised ``each`` loop.
PRIVATE_BYTES = 1 << 27
# Iterations of an ``each`` loop below which scalar code in a Python loop beats short arrays.
FEW_ITERATIONS = 4
