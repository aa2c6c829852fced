"""LRN for the reference toolchain: onnx 1.23's own fills as many channels as the batch has items, no more."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from intarsia.runtime.kernel import Array

if TYPE_CHECKING:
    from onnx.reference.op_run import OpRun


@cache
def lrn_operator() -> type[OpRun]:
    """The operator as a class for onnx's evaluator, in place of its own."""
    from onnx.reference.ops import op_lrn

    class LRN(op_lrn.LRN):  # type: ignore[misc]  # onnx is not typed for us
        def _run(self, x: Array, alpha: float, beta: float, bias: float, size: int) -> tuple[Array]:
            scale = bias + alpha / size * _square_sums(x, size)
            return ((x / scale**beta).astype(x.dtype),)

    return LRN


def _square_sums(x: Array, size: int) -> Array:
    """For each channel, the sum of squares over its window of `size` channels, clipped at the ends."""
    before, channels = (size - 1) // 2, x.shape[1]
    padding = [(0, 0), (before, size - 1 - before), *[(0, 0)] * (x.ndim - 2)]
    squares = np.pad(np.square(x), padding)
    return sum((squares[:, shift : shift + channels] for shift in range(size)), np.zeros_like(x))
