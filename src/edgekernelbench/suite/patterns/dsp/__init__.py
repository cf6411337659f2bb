"""Signal processing."""

from edgekernelbench.suite.patterns.dsp import (  # noqa: F401
    adaptive,
    arrays,
    filters,
    sequences,
    spectra,
    transforms,
)
