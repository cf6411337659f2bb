"""Which records may stand in one figure, and which may be held against each other."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from edgekernelbench.errors import UsageError
from edgekernelbench.evaluator.model import Performance
from edgekernelbench.records.schema import Record
from edgekernelbench.targets.model import Target

_OF_ONE_RUN: dict[str, Callable[[Record], object]] = {
    "agent": lambda r: r.agent,
    "model": lambda r: r.model,
    "set of options": lambda r: json.dumps(r.agent_options, sort_keys=True),
    "tolerance version": lambda r: r.task.tolerance_version,
    "budget": lambda r: r.limits.model_dump_json(),
    "isolation": lambda r: r.isolated,
}


def refuse_mixtures(records: Sequence[Record]) -> None:
    """Refuses records that are not of one run's kind.

    Raises:
        UsageError: they mix agents, their options, models, budgets or tolerance versions, or on a
            target processors, devices, numbers of threads, cache states or timers.
    """
    for name, key in _OF_ONE_RUN.items():
        values = sorted({str(key(record)) for record in records})
        _refuse_several(name, values)
    for target in sorted({record.task.target for record in records}):
        there = [record for record in records if record.task.target == target]
        for name, told in _CONDITIONS.items():
            _refuse_several(f"{name} on {target}", sorted(set(told(there))))


def _refuse_several(name: str, values: Sequence[str]) -> None:
    if len(values) > 1:
        told = ", ".join(value if len(value) <= 80 else f"{value[:80]}..." for value in values)
        raise UsageError(
            f"records of more than one {name}: {told}", "score one run's folder at a time"
        )


def by_kind(records: Sequence[Record]) -> list[list[Record]]:
    """Records apart by what `refuse_mixtures` refuses to mix, in the order of their first."""
    kinds: dict[tuple[str, ...], list[Record]] = {}
    for record in records:
        key = tuple(str(of(record)) for of in _OF_ONE_RUN.values())
        kinds.setdefault(key, []).append(record)
    return list(kinds.values())


def refuse_unlike(a: Sequence[Record], b: Sequence[Record]) -> None:
    """Refuses two runs whose verdicts or times do not mean the same.

    Raises:
        UsageError: they differ in tolerance version or target, or on a target in processor,
            device, threads, cache state or timer; or one of them mixes some.
    """
    _refuse("tolerance version", *({str(r.task.tolerance_version) for r in s} for s in (a, b)))
    targets, others = ({record.task.target for record in s} for s in (a, b))
    if not targets & others:
        _refuse("target", targets, others)
    for target in sorted(targets & others):
        here, there = ([r for r in s if r.task.target == target] for s in (a, b))
        for name, values in _CONDITIONS.items():
            _refuse(f"{name} on {target}", set(values(here)), set(values(there)))


def refuse_other_devices(a: Mapping[str, Target], b: Mapping[str, Target]) -> None:
    """Refuses two runs on devices of one name that describe themselves differently.

    Args:
        a, b: targets by name, as the settings of each run have them; what they do not tell
            contradicts nothing.

    Raises:
        UsageError: they do.
    """
    for name in sorted(a.keys() & b.keys()):
        if a[name].description and b[name].description:
            _refuse(f"device named {name}", {a[name].description}, {b[name].description})


def _refuse(name: str, a: set[str], b: set[str]) -> None:
    """A side that tells nothing (no correct kernel has no timer) contradicts nothing."""
    if len(a | b) > 1 and a and b:
        told = [", ".join(sorted(values)) for values in (a, b)]
        raise UsageError(
            f"runs of more than one {name}: {told[0]} in the first, {told[1]} in the second",
            "run both under the same conditions",
        )


def conditions(records: Sequence[Record]) -> dict[str, tuple[str, ...]]:
    """What records tell of how they were measured, by its name; without what none tells."""
    told = {name: tuple(sorted(set(values(records)))) for name, values in _CONDITIONS.items()}
    return {name: values for name, values in told.items() if values}


def _performances(records: Iterable[Record]) -> Iterator[Performance]:
    for record in records:
        evaluation = record.evaluation
        if evaluation is not None:
            yield from filter(None, (evaluation.performance, evaluation.quarantined))


def _processors(records: Iterable[Record]) -> Iterator[str]:
    for record in records:
        if record.evaluation is not None and record.evaluation.environment is not None:
            yield record.evaluation.environment.cpu


def _devices(records: Iterable[Record]) -> Iterator[str]:
    for performance in _performances(records):
        if performance.device is not None and performance.device.state is not None:
            yield performance.device.state.name


_CONDITIONS: dict[str, Callable[[Iterable[Record]], Iterable[str]]] = {
    "processor": _processors,
    "device": _devices,
    "number of threads": lambda records: (str(p.threads) for p in _performances(records)),
    "cache state": lambda records: (p.cache_state for p in _performances(records)),
    "timer": lambda records: (p.timer for p in _performances(records)),
}
