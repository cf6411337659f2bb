"""Scalar functions and row operations that references of several families share."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import erf

from edgekernelbench.suite.patterns.registry import Array


def relu(x: Array) -> Array:
    return np.maximum(x, 0)


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def silu(x: Array) -> Array:
    return x * sigmoid(x)


def gelu(x: Array) -> Array:
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


def hsigmoid(x: Array) -> Array:
    return np.clip(x + 3, 0, 6) / 6


def hswish(x: Array) -> Array:
    return x * hsigmoid(x)


def softmax(x: Array) -> Array:
    """Over the last axis."""
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def rms_norm(x: Array, g: Array, eps: float) -> Array:
    """Over the last axis."""
    return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + eps) * g


def layer_norm(x: Array, gamma: Array, beta: Array, eps: float) -> Array:
    """Over the last axis."""
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred**2).mean(axis=-1, keepdims=True)
    return centred / np.sqrt(variance + eps) * gamma + beta
