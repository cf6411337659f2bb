"""Image preprocessing and filters."""

from edgekernelbench.suite.patterns.image import (  # noqa: F401
    colour,
    filters,
    histograms,
    matching,
    neighbourhoods,
    raw,
)
