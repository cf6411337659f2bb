"""Workloads and subsets by name: the packaged suite, and behind it the user's own ones.

Own suites are read only for a name that the packaged suite does not have.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping

from edgekernelbench.errors import UsageError
from edgekernelbench.suite.load import SUBSETS, load_suite
from edgekernelbench.suite.model import Workload

OWN = "own"
_SUGGESTED = 3
_NUMBER = re.compile(r"_+\d+$")
_NAMED = 8


def find_workload(name: str) -> Workload:
    """The workload of that name.

    Raises:
        UsageError: naming the nearest ones, if there is none.
    """
    workloads = load_suite().workloads
    if name in workloads:
        return workloads[name]
    from edgekernelbench.suite.own import store

    own = store.find(name)
    if own is not None:
        return own
    if name in store.names():
        ids = [workload.id for workload in store.workloads(name)]
        more = f", ... ({len(ids)} in all)" if len(ids) > _NAMED else ""
        raise UsageError(
            f"{name!r} is an own suite, not a workload",
            f"its workloads: {', '.join(ids[:_NAMED])}{more}",
        )
    near = _nearest(name, [*workloads, *_own_ids()])
    raise UsageError(
        f"unknown workload {name!r}",
        f"did you mean {', '.join(near)}?" if near else "`ekb suite list` names them all",
    )


def _nearest(name: str, ids: list[str]) -> list[str]:
    """Workloads of the pattern whose name is nearest, the first ones first."""
    patterns: dict[str, list[str]] = {}
    for id in ids:
        patterns.setdefault(id.rpartition("__")[0] or id, []).append(id)
    near = difflib.get_close_matches(_NUMBER.sub("", name), patterns, 1, 0.6)
    return patterns[near[0]][:_SUGGESTED] if near else []


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


def find_workloads(subset: str, wanted: Mapping[str, str | int | None]) -> tuple[Workload, ...]:
    """The workloads of a subset whose facts are as wanted; None means any.

    Raises:
        UsageError: no such subset, or nothing is left; names the values that there are.
    """
    found = find_subset(subset)
    for fact, value in wanted.items():
        if value is None:
            continue
        there = sorted({str(getattr(workload, fact)) for workload in found})
        found = tuple(workload for workload in found if getattr(workload, fact) == value)
        if not found:
            near = difflib.get_close_matches(str(value), there, 3, 0.5) or there
            raise UsageError(
                f"no workload of subset {subset!r} with {fact} {value!r}",
                f"there are: {', '.join(near[:_NAMED])}{', ...' if len(near) > _NAMED else ''}",
            )
    return found


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
