"""Integer and weight-quantised operators."""

from edgekernelbench.suite.patterns.quantised import (  # noqa: F401
    binary,
    integer,
    layers,
    pointwise,
    rescale,
    weight_only,
)
