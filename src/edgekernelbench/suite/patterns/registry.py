"""The ``@pattern`` decorator and the registry it fills.

A pattern is declared around its reference function::

    @pattern("matmul_nt")
    def matmul_nt(A: Array, B: Array) -> Array:
        return A @ B.T

    @matmul_nt.twin
    def _(g: Graph, A: Value, B: Array) -> Value:
        return g.MatMul(A, B.T)

Functions name what they need as parameters: inputs, bindings and derived sizes; the first
parameter of a twin is the graph. Where there are too many to name, ``**rest`` takes all others.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from edgekernelbench.suite.draw import Draw, Generator

if TYPE_CHECKING:
    from onnx import ModelProto

Array = NDArray[Any]
"""An array in a reference: float64 for float inputs, int64 for integer ones."""

Reference = Callable[..., Array | tuple[Array, ...]]
JointInputs = Callable[[Draw], Mapping[str, np.ndarray]]


@dataclass(eq=False)
class Pattern:
    """What a pattern computes and how it is drawn. Calling it calls the reference.

    Attributes:
        reference: inputs to outputs; a tuple if there are several, in declared order.
        draw: generators of inputs for which the default draw is wrong.
        no_twin: why there is no ONNX twin.
        exempt: controls that a right kernel may equal, by name, each with the reason.
        inert: inputs that cannot change the outputs, by name, each with the reason.
        sparse_output: why most of an output is one value, where that is its nature.
        build_twin: adds the pattern's operators to a graph and returns the output values.
        joint_inputs: draws inputs that depend on each other.
        twin_model: a whole ONNX model from the inputs, in place of ``build_twin``.
        text: the ONNX operators that authors are shown in place of the reference's source.
    """

    id: str
    reference: Reference
    draw: Mapping[str, Generator] = field(default_factory=dict)
    no_twin: str | None = None
    exempt: Mapping[str, str] = field(default_factory=dict)
    inert: Mapping[str, str] = field(default_factory=dict)
    sparse_output: str = ""
    build_twin: Callable[..., Any] | None = None
    joint_inputs: JointInputs | None = None
    twin_model: Callable[[Mapping[str, np.ndarray]], ModelProto] | None = None
    text: str = ""

    @property
    def has_twin(self) -> bool:
        return self.build_twin is not None or self.twin_model is not None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.reference(*args, **kwargs)

    def guard(self) -> AbstractContextManager[object]:
        """Around every call of the pattern's functions: what keeps foreign code from harm."""
        return nullcontext()

    def twin(self, build: Callable[..., Any]) -> Callable[..., Any]:
        """Decorator of the function that builds the ONNX twin."""
        if self.no_twin is not None:
            raise ValueError(f"{self.id} has a twin and a reason not to have one")
        self.build_twin = build
        return build

    def inputs(self, draw: JointInputs) -> JointInputs:
        """Decorator of a function that draws inputs which depend on each other."""
        self.joint_inputs = draw
        return draw


_PATTERNS: dict[str, Pattern] = {}


def pattern(
    id: str,
    *,
    draw: Mapping[str, Generator] | None = None,
    no_twin: str | None = None,
    exempt: Mapping[str, str] | None = None,
    inert: Mapping[str, str] | None = None,
    sparse_output: str = "",
) -> Callable[[Reference], Pattern]:
    """Register the decorated reference under a pattern id; see `Pattern`."""

    def register(reference: Reference) -> Pattern:
        if id in _PATTERNS:
            raise ValueError(f"pattern {id} is declared twice")
        _PATTERNS[id] = Pattern(
            id, reference, draw or {}, no_twin, exempt or {}, inert or {}, sparse_output
        )
        return _PATTERNS[id]

    return register


def find_pattern(family: str, id: str) -> Pattern:
    """The pattern of that id, importing its family's file first.

    Raises:
        LookupError: there is no such file, or it does not declare the pattern.
    """
    name = f"edgekernelbench.suite.patterns.{family}"
    where = f"suite/patterns/{family}"
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:  # one that the file itself wants
            raise
        raise LookupError(f"pattern {id}: there is no {where}.py and no folder {where}/") from error
    if id in _PATTERNS:
        return _PATTERNS[id]
    if hasattr(module, "__path__"):
        raise LookupError(
            f"pattern {id} is declared in no file that {where}/__init__.py imports; a new file "
            "must be imported there"
        )
    raise LookupError(f"pattern {id} is not declared in {where}.py")


def arguments(
    function: Callable[..., Any], available: Mapping[str, Any], who: str, skip: int = 0
) -> dict[str, Any]:
    """The entries of ``available`` that ``function`` names as parameters, after the first few.

    Args:
        who: what the function is, for the message.

    Raises:
        LookupError: it names something that the pattern does not have.
    """
    parameters = list(inspect.signature(function).parameters.values())[skip:]
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return dict(available)
    wanted = [parameter.name for parameter in parameters]
    missing = [name for name in wanted if name not in available]
    if missing:
        raise LookupError(
            f"{who} asks for unknown {', '.join(missing)}; there are {', '.join(available)}"
        )
    return {name: available[name] for name in wanted}
