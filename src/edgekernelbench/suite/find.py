"""Workloads and subsets by name: the packaged suite, and behind it the user's own ones.

Own suites are read only for a name that the packaged suite does not have.
"""

from __future__ import annotations

from edgekernelbench.errors import UsageError
from edgekernelbench.suite.load import SUBSETS, load_suite
from edgekernelbench.suite.model import Workload

OWN = "own"


def find_workload(name: str) -> Workload:
    """The workload of that name.

    Raises:
        UsageError: naming the nearest ones, if there is none.
    """
    import difflib

    workloads = load_suite().workloads
    if name in workloads:
        return workloads[name]
    from edgekernelbench.suite.own import store

    own = store.find(name)
    if own is not None:
        return own
    near = difflib.get_close_matches(name, [*workloads, *_own_ids()], 3, 0.5)
    raise UsageError(
        f"unknown workload {name!r}",
        f"did you mean {', '.join(near)}?" if near else "`ekb suite list` names them all",
    )


def find_subset(name: str) -> tuple[Workload, ...]:
    """The workloads of a subset: of the packaged suite, or ``own``, or ``own:NAME``.

    Raises:
        UsageError: no such subset.
    """
    head, _, suite = name.partition(":")
    if head == OWN:
        from edgekernelbench.suite.own import store

        return store.workloads(suite if ":" in name else None)
    if name not in SUBSETS:
        raise UsageError(
            f"unknown subset {name!r}", f"subsets: {', '.join(SUBSETS)}, own, own:NAME"
        )
    return load_suite().subset(name)


def _own_ids() -> list[str]:
    """For suggestions: a damaged suite is passed over."""
    from edgekernelbench.suite.own import store

    found: list[str] = []
    for name in store.names():
        try:
            found += [workload.id for workload in store.workloads(name)]
        except UsageError:
            continue
    return found
