"""Is a workload fit to be a benchmark? Rules, each with a name, tried one by one.

`check_workload` tries them all on one workload, `pool.check_all` on many in several processes.
"""

from edgekernelbench.suite.check.check import check_workload
from edgekernelbench.suite.check.model import Effort, Finding, Outcome
from edgekernelbench.suite.check.rules import RULES

__all__ = ["RULES", "Effort", "Finding", "Outcome", "check_workload"]
