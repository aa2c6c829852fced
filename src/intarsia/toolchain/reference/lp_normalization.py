"""LpNormalization for the reference toolchain: with p=1, onnx 1.23's own adds numbers with their signs."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from intarsia.runtime.kernel import Array

if TYPE_CHECKING:
    from onnx.reference.op_run import OpRun


@cache
def lp_normalization_operator() -> type[OpRun]:
    """Return the operator as onnx's evaluator needs it, in place of its own."""
    from onnx.reference.ops import op_lp_normalization

    class LpNormalization(op_lp_normalization.LpNormalization):  # type: ignore[misc]  # onnx is not typed for us
        def _run(self, x: Array, **_: int) -> tuple[Array]:
            axis, p = self.axis, self.p
            norm = np.power(np.power(np.abs(x), p).sum(axis=axis, keepdims=True), 1.0 / p)
            return (np.where(norm == 0, 0, x / norm).astype(x.dtype),)

    return LpNormalization
