"""An ONNX file as a model that the rest can rely on, or one error that says what is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from edgekernelbench.errors import UsageError
from edgekernelbench.suite.own.graph.functions import inlined
from edgekernelbench.suite.own.graph.walk import label, nodes, tensors
from edgekernelbench.suite.own.guard import first_line, is_beside

if TYPE_CHECKING:
    from onnx import ModelProto

MAX_FILE = 1 << 30
RANDOM = frozenset(
    ["RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial",
     "Bernoulli"]
)  # fmt: skip


def read_model(path: Path) -> ModelProto:
    """The model of a file: weights in it, functions inlined, checked.

    Raises:
        UsageError: it is no ONNX model, or one that no task can be made of.
    """
    model = _with_external_data(_parsed(path), path)
    _check_version(model, path)
    model = inlined(model, path)
    _check_operators(model, path)
    _check_interface(model, path)
    _check_whole(model, path)
    return model


def _parsed(path: Path) -> ModelProto:
    import onnx
    from google.protobuf.message import DecodeError

    help = "give an ONNX model (.onnx); export it again if the file was cut off"
    try:
        if not path.is_file():  # a device or pipe may never end
            raise UsageError(f"{path}: not a regular file", help)
        if path.stat().st_size > MAX_FILE:
            raise UsageError(f"{path}: larger than {MAX_FILE >> 20} MiB", CUT)
        model = onnx.load_from_string(path.read_bytes())
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror})", help) from error
    except DecodeError as error:
        raise UsageError(f"{path}: not an ONNX model, or cut off", help) from error
    if not model.opset_import or not (model.graph.node or model.graph.output):
        raise UsageError(f"{path}: not an ONNX model, or cut off", help)
    return model


CUT = "cut a part out with `onnx.utils.extract_model(source, target, inputs, outputs)` and add that"


def _with_external_data(model: ModelProto, path: Path) -> ModelProto:
    from onnx import external_data_helper as external

    for tensor in tensors(model.graph):
        if not external.uses_external_data(tensor):
            continue
        told = f"{path}: tensor {tensor.name!r}"
        try:
            location = external.ExternalDataInfo(tensor).location
            there = bool(location) and is_beside(path, location)
        except (ValueError, OSError, RuntimeError) as error:  # RuntimeError: links in a circle
            raise UsageError(
                f"{told}: its place in external data makes no sense: {first_line(error)}",
                "export the model again",
            ) from error
        if not there:
            raise UsageError(
                f"{told} lies in {location!r}, which is not there",
                f"put that file beside the model, in {path.parent}",
            )
    try:
        external.load_external_data_for_model(model, str(path.parent))
    except Exception as error:  # ValueError, ValidationError, OSError ...
        raise UsageError(
            f"{path}: external data cannot be read: {first_line(error)}", "export the model again"
        ) from error
    return model


def _check_version(model: ModelProto, path: Path) -> None:
    import onnx

    newest = onnx.defs.onnx_opset_version()
    help = f"export it for opset {newest} or older, or install a newer onnx and onnxruntime"
    if model.ir_version > onnx.IR_VERSION:
        raise UsageError(
            f"{path}: IR version {model.ir_version}; onnx {onnx.__version__} knows up to "
            f"{onnx.IR_VERSION}",
            help,
        )
    for imported in model.opset_import:
        if imported.domain in ("", "ai.onnx") and imported.version > newest:
            raise UsageError(
                f"{path}: opset {imported.version}; onnx {onnx.__version__} knows up to {newest}",
                help,
            )


def _check_operators(model: ModelProto, path: Path) -> None:
    for node in nodes(model.graph):
        if node.domain not in ("", "ai.onnx"):
            raise UsageError(
                f"{path}: {label(node)} is of domain {node.domain!r}",
                "only standard ONNX operators have a reference; export without custom and "
                "runtime-specific ones, or cut the model before it",
            )
        if node.op_type in RANDOM:
            raise UsageError(
                f"{path}: {label(node)} draws random numbers", "export the model for inference"
            )


def _check_interface(model: ModelProto, path: Path) -> None:
    graph = model.graph
    known = {initializer.name for initializer in graph.initializer}
    if not [given for given in graph.input if given.name not in known]:
        raise UsageError(
            f"{path}: the model has no inputs", "a task needs at least one that is no weight"
        )
    if not graph.output:
        raise UsageError(f"{path}: the model has no outputs", "export it with outputs")
    if graph.sparse_initializer:
        name = graph.sparse_initializer[0].values.name
        raise UsageError(f"{path}: initializer {name!r} is sparse", "export it as a dense one")
    for value in (*graph.input, *graph.output):
        kind = value.type.WhichOneof("value")
        if kind != "tensor_type":
            told = (kind or "nothing that is known").removesuffix("_type")
            raise UsageError(f"{path}: {value.name!r} is a {told}, not a tensor", CUT)


def _check_whole(model: ModelProto, path: Path) -> None:
    from onnx import checker

    try:
        checker.check_model(model)
    except Exception as error:  # ValidationError, or ValueError of the size limit
        raise UsageError(
            f"{path}: not a valid ONNX model: {first_line(error)}", "export the model again"
        ) from error
