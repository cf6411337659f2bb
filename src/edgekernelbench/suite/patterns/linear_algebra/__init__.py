"""Small dense linear algebra and geometry."""

from edgekernelbench.suite.patterns.linear_algebra import (  # noqa: F401
    factorisations,
    geometry,
    products,
    solves,
)
