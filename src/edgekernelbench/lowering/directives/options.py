"""`option NAME VALUE` lines of a schedule: which there are, and their values."""

from __future__ import annotations

from edgekernelbench.ir import surface
from edgekernelbench.ir.diagnostics import Diagnostic, Report
from edgekernelbench.ir.words import did_you_mean
from edgekernelbench.lowering import rules
from edgekernelbench.lowering.directives.values import Numbers
from edgekernelbench.lowering.options import Options, choices
from edgekernelbench.targets.model import Target


def resolve_options(
    schedule: surface.ScheduleLayer | None, target: Target, numbers: Numbers, report: Report
) -> Options:
    """The options that the schedule states; those with errors count as not stated."""
    found: dict[str, int | str] = {}
    known = choices(target)
    for line in schedule.lines if schedule else ():
        if not isinstance(line, surface.OptionLine):
            continue
        assert schedule is not None
        if schedule.target != target.backend:
            message = f"an option in the section for `{schedule.target}`, a class of backends"
            own = f"move the schedule into `schedule for {target.backend} {{ ... }}`"
            known_section = target.backend in surface.TARGET_NAMES
            help = [own if known_section else f"leave it out: `{target.backend}` has no options"]
            report.error(rules.OPTION_SECTION, message, line.span, help)
        elif line.name not in known:
            close = did_you_mean(line.name, known)
            help = [f"did you mean `{close}`?"] if close else []
            listed = ", ".join(f"`{name}`" for name in known) or "none"
            message = f"there is no option `{line.name}` for `{target.backend}`"
            report.error(rules.OPTION, message, line.span, [*help, f"there are {listed}"])
        elif line.name in found:
            message = f"`option {line.name}` twice"
            report.error(rules.OPTION, message, line.span, ["keep one"])
        else:
            value = _value(line, known[line.name], numbers, report)
            if value is not None:
                found[line.name] = value
    return Options(**found)  # type: ignore[arg-type]


def _value(
    line: surface.OptionLine,
    legal: tuple[int | str, ...] | range,
    numbers: Numbers,
    report: Report,
) -> int | str | None:
    written = line.value
    if isinstance(written, surface.Hole) and written.choices:
        written = written.choices[0]
    value: int | str | Diagnostic
    if isinstance(written, surface.Name) and written.id in legal:
        value = written.id
    elif all(isinstance(choice, str) for choice in legal):
        value = ""
    else:
        value = numbers.evaluate(written)
    if isinstance(value, Diagnostic):
        report.add(value)
    elif value in legal:
        return value
    else:
        text = f"{legal[0]} to {legal[-1]}" if isinstance(legal, range) else _listed(legal)
        message = f"this is no value of `{line.name}`"
        report.error(rules.OPTION, message, line.value.span, [f"it takes {text}"])
    return None


def _listed(legal: tuple[int | str, ...]) -> str:
    return " or ".join(str(choice) for choice in legal)
