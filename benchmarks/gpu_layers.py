"""Layers of `benchmarks.gpu`: their programs, the same in float64 by NumPy, and by torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
_TAPS = 3


@dataclass(frozen=True)
class Layer:
    """A layer beside torch's.

    Attributes:
        text: Program of the layer.
        exact: Function from its inputs in float64 to its result, by NumPy.
        rival: Function of torch that computes the same from tensors.
    """

    text: str
    exact: Callable[..., Array]
    rival: Callable[..., Any]


def layers() -> dict[str, Layer]:
    """Return the layers by name."""
    return {
        **{f"product_{n}": product(n, n, n) for n in (128, 512, 1024, 2048, 4096)},
        "product_16x4096x4096": product(16, 4096, 4096),
        **{f"product_float16_{n}": product(n, n, n, "float16") for n in (128, 1024, 4096)},
        "product_float16_16x4096x4096": product(16, 4096, 4096, "float16"),
        **{f"convolution_{c}_{size}": convolution(c, size) for c, size in ((64, 56), (128, 28), (256, 14))},
        **{f"softmax_{n}x{k}": rows(n, k) for n, k in ((4096, 128), (1024, 4096), (16, 32000))},
    }


def product(m: int, n: int, k: int, dtype: str = "float32") -> Layer:
    """Return a product of two matrices."""
    parameters = f"%x: Tensor[({m}, {k}), {dtype}], %y: Tensor[({k}, {n}), {dtype}]"
    text = f"def @main({parameters}) {{ MatMul(%x, %y) }}"
    return Layer(text, lambda x, y: x @ y, lambda x, y: x @ y)


def convolution(channels: int, size: int) -> Layer:
    """Return a convolution of 3 by 3 with as many channels before as after, and Relu."""
    x = f"%x: Tensor[(1, {channels}, {size}, {size}), float32]"
    w = f"%w: Tensor[({channels}, {channels}, {_TAPS}, {_TAPS}), float32]"
    text = f"def @main({x}, {w}) {{ Relu(Conv(%x, %w, pads=[1, 1, 1, 1])) }}"
    return Layer(text, _exact_convolution, lambda x, w: _torch().nn.functional.conv2d(x, w, padding=1).relu())


def rows(count: int, length: int) -> Layer:
    """Return a softmax of rows."""
    text = f"def @main(%x: Tensor[({count}, {length}), float32]) {{ Softmax(%x, axis=-1) }}"
    return Layer(text, _exact_softmax, lambda x: x.softmax(-1))


def _exact_convolution(x: Array, w: Array) -> Array:
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (_TAPS, _TAPS), axis=(2, 3))
    result: Array = np.maximum(np.einsum("nchwij,ocij->nohw", windows, w, optimize=True), 0)
    return result


def _exact_softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(-1, keepdims=True))
    result: Array = powers / powers.sum(-1, keepdims=True)
    return result


def _torch() -> Any:
    import torch

    return torch
