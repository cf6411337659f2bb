"""Pure data movement, and movement with one operation on the way."""

from edgekernelbench.suite.patterns.indexing import gather, layout, sliding  # noqa: F401
