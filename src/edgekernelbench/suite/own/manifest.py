"""What is stored of an own suite: ``suite.json`` beside the model or Python file."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from edgekernelbench.suite.model import Workload

PLAIN_FILE = r"^\w[\w.-]*$"


class _Stored(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class OwnTask(_Stored):
    """One task.

    Attributes:
        file: in the suite's folder: the ONNX model with header names, or the Python file.
        function: in a Python file: whose table and reference it is.
        canonical: file of the canonical program; empty where there is none.
        no_canonical: why there is none, in one line.
        operators: an ONNX model's operators as text, for statements.
        ranges: lowest and highest value of inputs whose default range would be wrong.
    """

    workload: Workload
    file: str = Field(pattern=PLAIN_FILE)
    function: str = ""
    canonical: str = Field("", pattern=f"{PLAIN_FILE}|^$")
    no_canonical: str = ""
    operators: str = ""
    ranges: dict[str, tuple[int | float, int | float]] = {}


class Manifest(_Stored):
    """An own suite. ``source``: the path that it was added from, for people."""

    version: Literal[1] = 1
    name: str
    kind: Literal["onnx", "python"]
    source: str
    tasks: tuple[OwnTask, ...]
