"""The constants of an ONNX twin, at build time and when the program is bound.

A build takes the constants that every draw changes as arguments, and may bake in the others. That
nothing baked in has changed is checked at each binding.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np


def initializers(twin: bytes) -> dict[str, np.ndarray]:
    """All initializers of a serialized ONNX model, by name; those that NumPy cannot hold are
    left out."""
    import onnx
    from onnx import numpy_helper

    model = onnx.load_from_string(twin)
    return {
        tensor.name: numpy_helper.to_array(tensor)
        for tensor in model.graph.initializer
        if tensor.data_type not in (onnx.TensorProto.UINT4, onnx.TensorProto.INT4)
    }


def digests(arrays: Mapping[str, np.ndarray], names: Iterable[str]) -> dict[str, str]:
    """What `check_baked` compares: SHA-256 (hex) of the bytes, by name."""
    return {name: _digest(arrays[name]) for name in names if name in arrays}


def check_baked(arrays: Mapping[str, np.ndarray], baked: Mapping[str, Any]) -> None:
    """Raises ValueError if a constant that was baked in has another value now."""
    for name, digest in baked.items():
        if _digest(arrays[name]) != digest:
            raise ValueError(f"constant {name} was taken for fixed when the baseline was built")


def _digest(array: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
