"""The function ``main`` of a lowered Relax module, binding by binding."""

from __future__ import annotations

from typing import Any

from edgekernelbench.compilers.tvm.lift.blocks import FunctionLifter
from edgekernelbench.compilers.tvm.lift.refusal import Refused, unsayable
from edgekernelbench.compilers.tvm.lift.sources import Builder, Constant, Source
from edgekernelbench.ir import core
from edgekernelbench.ir.core import Tensor

RNode = Any  # tvm's classes share no useful static type
Value = Source | tuple[Source, ...] | None
"""What a Relax variable stands for; None for a shape, which loop functions know by themselves."""


class GraphLifter:
    """Lifts the calls of ``main`` in their order."""

    def __init__(self, module: RNode, builder: Builder) -> None:
        self._module = module
        self._builder = builder
        self._values: dict[RNode, Value] = {}
        self._constants = 0

    def run(self, parameters: tuple[Tensor, ...], outputs: tuple[Tensor, ...]) -> None:
        """Appends all stages to the program, ``outputs`` included.

        Raises:
            Refused: an operator is not lowered, or a function not of a form that the lift knows.
        """
        main = self._module["main"]
        self._values = dict(zip(main.params, parameters, strict=True))
        bindings = [binding for block in main.body.blocks for binding in block.bindings]
        results = self._results(main.body.body, bindings)
        if len(results) != len(outputs):
            raise Refused(f"the model has {len(results)} results")
        wanted: dict[RNode, Tensor] = {}
        for var, tensor in zip(results, outputs, strict=True):
            wanted.setdefault(var, tensor)
        for binding in bindings:
            self._values[binding.var] = self._value(binding, wanted)
        for var, tensor in zip(results, outputs, strict=True):
            self._complete(self._values.get(var), tensor)

    def _results(self, body: RNode, bindings: list[RNode]) -> list[RNode]:
        """The variables that are returned, aliases followed."""
        made = {binding.var: binding.value for binding in bindings}

        def follow(expr: RNode) -> RNode:
            while expr in made and type(made[expr]).__name__ in ("Var", "DataflowVar"):
                expr = made[expr]
            return expr

        body = follow(body)
        if body in made and type(made[body]).__name__ == "Tuple":
            body = made[body]
        items = tuple(body.fields) if type(body).__name__ == "Tuple" else (body,)
        return [follow(item) for item in items]

    def _value(self, binding: RNode, wanted: dict[RNode, Tensor]) -> Value:
        value = binding.value
        match type(value).__name__:
            case "Var" | "DataflowVar":
                return self._values[value]
            case "GenericConst":
                return self._source(value)
            case "Tuple":
                return tuple(self._source(item) for item in value.fields)
            case "TupleGetItem":
                items = self._values[value.tuple_value]
                assert isinstance(items, tuple)
                return items[int(value.index)]
            case "ShapeExpr":
                return None
            case "Call":
                return self._call(value, wanted.get(binding.var))
        raise unsayable(type(value).__name__)

    def _source(self, expr: RNode) -> Source:
        if type(expr).__name__ == "GenericConst":
            self._constants += 1
            return Constant(expr.value.numpy(), self._constants)
        found = self._values.get(expr)
        if found is None or isinstance(found, tuple):
            raise Refused("an argument that is no array")
        return found

    def _call(self, call: RNode, output: Tensor | None) -> Value:
        name = str(getattr(call.op, "name", call.op))
        if name == "relax.shape_of":
            return None
        if name != "relax.call_tir":
            raise Refused(f"operator {_plain(name)} is not lowered to loops")
        if len(call.args) != 2:
            raise Refused("a call with symbolic arguments")
        function = self._module[call.args[0]]
        arguments = tuple(self._source(item) for item in call.args[1].fields)
        single = type(call.ty_args[0]).__name__ != "TupleType"
        count = 1 if single else len(call.ty_args[0].fields)
        wanted = (output,) if single else (None,) * count
        label = str(call.args[0].name_hint).removeprefix("tir_")
        made = FunctionLifter(self._builder, label).run(function, arguments, wanted)
        return made[0] if single else made

    def _complete(self, value: Value, output: Tensor) -> None:
        """Copies what is returned and is not yet an output of its own."""
        if value == output:
            return
        if not isinstance(value, Tensor) or value.shape != output.shape:
            raise Refused(f"output {output.name} is no array of the graph")
        axes = tuple(
            core.Axis(self._builder.var(f"i{k}"), extent) for k, extent in enumerate(output.shape)
        )
        index = tuple(core.VarRef(axis.var) for axis in axes)
        expr: core.Expr = core.Load(value, index)
        if expr.dtype is not output.dtype:
            expr = core.Cast(expr, output.dtype)
        variables = tuple(axis.var for axis in axes)
        self._builder.stages.append(core.Stage(output.name, output, variables, axes, expr))


def _plain(operator: str) -> str:
    """An operator's name without the compiler's notation: ``R.ExternFunc("f")`` is ``f``."""
    quoted = operator.split('"')
    return quoted[1] if len(quoted) == 3 else operator.removeprefix("relax.")
