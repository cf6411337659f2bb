"""Numbers in schedule and memory layers: literals, sizes, holes, and arithmetic on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from edgekernelbench.ir import surface
from edgekernelbench.ir.diagnostics import Diagnostic, Report
from edgekernelbench.ir.words import did_you_mean
from edgekernelbench.lowering import rules

_LARGEST = 2**31 - 1

_OPS: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
}


class Numbers:
    """Evaluates step expressions over the sizes of a kernel; a hole counts as its first choice."""

    def __init__(self, sizes: Mapping[str, int | float], report: Report) -> None:
        self._sizes = sizes
        self._report = report

    def step(self, expr: surface.Expr) -> int | None:
        """The value of a step, None after a diagnostic."""
        found = self.evaluate(expr)
        if isinstance(found, Diagnostic):
            self._report.add(found)
            return None
        if found < 1:
            self._report.error(rules.NUMBER, f"the step is {found}", expr.span, ["use 1 or more"])
            return None
        return found

    def evaluate(self, expr: surface.Expr) -> int | Diagnostic:
        result = self._value(expr)
        if isinstance(result, int) and abs(result) > _LARGEST:
            return self._bad(expr, "the number does not fit 32 bits")
        return result

    def _value(self, expr: surface.Expr) -> int | Diagnostic:
        match expr:
            case surface.Num(value=value):
                if isinstance(value, int):
                    return value
                return self._bad(expr, f"{value} is no whole number")
            case surface.Name(id=name):
                return self._size(expr, name)
            case surface.Hole(choices=choices) if choices:
                return self._value(choices[0])
            case surface.Unary(op="-" | "+" as op, arg=arg):
                value = self._value(arg)
                return -value if isinstance(value, int) and op == "-" else value
            case surface.Binary(op=op) if op in _OPS:
                return self._arithmetic(expr)
            case surface.Call(fn="min" | "max" as fn, args=args) if args:
                values = [self._value(a) for a in args]
                bad = next((v for v in values if isinstance(v, Diagnostic)), None)
                numbers = [v for v in values if isinstance(v, int)]
                return bad or (min(numbers) if fn == "min" else max(numbers))
            case _:
                return self._bad(expr, "this is no number that is known before the kernel runs")

    def _arithmetic(self, expr: surface.Binary) -> int | Diagnostic:
        a, b = self._value(expr.left), self._value(expr.right)
        if isinstance(a, Diagnostic) or isinstance(b, Diagnostic):
            return a if isinstance(a, Diagnostic) else b
        if expr.op in ("//", "%") and b <= 0:
            return self._bad(expr, f"division by {b}")
        if abs(a) > _LARGEST or abs(b) > _LARGEST:
            return self._bad(expr, "the number does not fit 32 bits")
        return _OPS[expr.op](a, b)

    def _size(self, expr: surface.Name, name: str) -> int | Diagnostic:
        value = self._sizes.get(name)
        if isinstance(value, int):
            return value
        if value is not None:
            return self._bad(expr, f"the size `{name}` is {value}, no whole number")
        close = did_you_mean(name, self._sizes)
        known = ", ".join(self._sizes) or "none"
        help = [f"did you mean `{close}`?"] if close else [f"sizes of this kernel: {known}"]
        return self._bad(expr, f"there is no size `{name}`", help)

    def _bad(self, expr: surface.Expr, message: str, help: list[str] | None = None) -> Diagnostic:
        return Diagnostic(rules.NUMBER, message, expr.span, tuple(help or ()))
