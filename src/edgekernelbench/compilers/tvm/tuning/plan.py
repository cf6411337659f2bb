"""A graph of compiled loop functions as plain steps: what is called with which arrays.

No virtual machine stands between the steps, and results are written where they are wanted, so the
time of a plan is that of its functions.
"""

from __future__ import annotations

import math
from typing import Any

from pydantic import BaseModel, ConfigDict

from edgekernelbench.compilers.tvm.lift.refusal import Refused

RNode = Any  # tvm's classes share no useful static type
LIBRARY, PLAN, BAKED = "functions.so", "plan.json", "baked.npz"


class _Stored(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Operand(_Stored):
    """An array by name, in the shape that a function wants it in."""

    name: str
    shape: tuple[int, ...]


class Space(_Stored):
    """An array that the runner provides: a result of one step for later ones."""

    dtype: str
    shape: tuple[int, ...]


class Step(_Stored):
    """One call: arguments, then results."""

    function: str
    operands: tuple[Operand, ...]


class Plan(_Stored):
    """A whole program.

    Attributes:
        inputs, params, outputs: names of the arrays that come from outside.
        spaces: arrays between steps.
        prepack: steps that read nothing but ``params`` and baked constants.
        steps: what is timed.
    """

    inputs: tuple[str, ...]
    params: tuple[str, ...]
    outputs: tuple[str, ...]
    spaces: dict[str, Space]
    prepack: tuple[Step, ...]
    steps: tuple[Step, ...]


class Planner:
    """Reads the function ``main`` of a Relax module, binding by binding.

    Attributes:
        baked: constants of the graph, by the names that operands have.
    """

    def __init__(self, module: Any) -> None:
        self._module = module
        self._values: dict[RNode, Any] = {}
        self._spaces: dict[str, Space] = {}
        self._prepack: list[Step] = []
        self._steps: list[Step] = []
        self._early: set[str] = set()
        self.baked: dict[str, Any] = {}

    def run(
        self, inputs: tuple[str, ...], params: tuple[str, ...], outputs: tuple[str, ...]
    ) -> Plan:
        """The plan, its parameters named in the order of ``main``'s.

        Raises:
            Refused: the graph does something else than call loop functions.
        """
        main = self._module["main"]
        self._early = {f"param.{name}" for name in params}
        names = [f"input.{name}" for name in inputs] + [f"param.{name}" for name in params]
        for var, name in zip(main.params, names, strict=True):
            self._values[var] = Operand(name=name, shape=_shape(var.ty))
        for block in main.body.blocks:
            for binding in block.bindings:
                self._values[binding.var] = self._value(binding.value)
        renamed = self._results(main.body.body, outputs)
        return Plan(
            inputs=inputs,
            params=params,
            outputs=outputs,
            spaces={n: s for n, s in self._spaces.items() if n not in renamed},
            prepack=tuple(_renamed(step, renamed) for step in self._prepack),
            steps=tuple(_renamed(step, renamed) for step in self._steps),
        )

    def _results(self, body: RNode, outputs: tuple[str, ...]) -> dict[str, str]:
        """New names of the arrays that are returned."""
        value = self._value(body)
        results = value if isinstance(value, tuple) else (value,)
        renamed: dict[str, str] = {}
        for name, result in zip(outputs, results, strict=True):
            made = isinstance(result, Operand) and result.name in self._spaces
            if not made or result.name in renamed or result.name in self._early:
                raise Refused(f"no function of its own writes output {name}")
            renamed[result.name] = f"output.{name}"
        return renamed

    def _value(self, value: RNode) -> Any:
        """An operand, a tuple of values, or None for a shape."""
        match type(value).__name__:
            case "Var" | "DataflowVar":
                return self._values[value]
            case "GenericConst":
                return self._baked(value.value.numpy())
            case "Tuple":
                return tuple(self._value(item) for item in value.fields)
            case "TupleGetItem":
                return self._value(value.tuple_value)[int(value.index)]
            case "ShapeExpr":
                return None
            case "Call":
                return self._call(value)
        raise Refused(f"a graph with {type(value).__name__}")

    def _array(self, value: RNode) -> Operand:
        found = self._value(value)
        if not isinstance(found, Operand):
            raise Refused("an argument that is no array")
        return found

    def _baked(self, array: Any) -> Operand:
        name = f"baked.{len(self.baked)}"
        self.baked[name] = array
        self._early.add(name)
        return Operand(name=name, shape=tuple(array.shape))

    def _call(self, call: RNode) -> Any:
        name = str(getattr(call.op, "name", call.op))
        if name != "relax.call_tir":
            raise Refused(f"operator {name.removeprefix('relax.')} is no loop function")
        if len(call.args) != 2:
            raise Refused("a call with symbolic arguments")
        given = [self._array(item) for item in call.args[1].fields]
        made_type = call.ty_args[0]
        single = type(made_type).__name__ != "TupleType"
        types = (made_type,) if single else tuple(made_type.fields)
        if len(given) == 1 and single and self._aliases(given[0], call.args[0]):
            shape = _shape(types[0])
            if math.prod(shape) == math.prod(given[0].shape):  # the pattern allows for padding
                return Operand(name=given[0].name, shape=shape)
        early = all(operand.name in self._early for operand in given)
        made = tuple(self._space(kind, early) for kind in types)
        step = Step(function=str(call.args[0].name_hint), operands=(*given, *made))
        (self._prepack if early else self._steps).append(step)
        return made[0] if single else made

    def _aliases(self, operand: Operand, function: RNode) -> bool:
        """Whether a function only gives an array another shape. Not of arrays from outside: an
        output must be written."""
        from tvm import relax

        return operand.name in self._spaces and bool(
            relax.analysis.has_reshape_pattern(self._module[function])
        )

    def _space(self, kind: RNode, early: bool) -> Operand:
        name = f"space.{len(self._spaces)}"
        self._spaces[name] = Space(dtype=str(kind.dtype), shape=_shape(kind))
        if early:
            self._early.add(name)
        return Operand(name=name, shape=_shape(kind))


def _shape(kind: RNode) -> tuple[int, ...]:
    shape = getattr(kind, "shape", None)
    if shape is None or any(type(n).__name__ != "IntImm" for n in shape):
        raise Refused("an array whose shape is not known")
    return tuple(int(n) for n in shape)


def _renamed(step: Step, names: dict[str, str]) -> Step:
    operands = tuple(
        Operand(name=names.get(operand.name, operand.name), shape=operand.shape)
        for operand in step.operands
    )
    return Step(function=step.function, operands=operands)
