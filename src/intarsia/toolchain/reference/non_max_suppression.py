"""NonMaxSuppression for the reference toolchain: onnx 1.23 fails on a limit that is a scalar or absent."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from intarsia.runtime.kernel import Array

if TYPE_CHECKING:
    from onnx.reference.op_run import OpRun


@cache
def non_max_suppression_operator() -> type[OpRun]:
    """Return the operator as onnx's evaluator needs it, in place of its own."""
    from onnx.reference.ops import op_non_max_suppression

    class NonMaxSuppression(op_non_max_suppression.NonMaxSuppression):  # type: ignore[misc]  # not typed
        def _run(
            self,
            boxes: Array,
            scores: Array,
            most: Array | None = None,
            overlap: Array | None = None,
            least_score: Array | None = None,
            center_point_box: int | None = None,
        ) -> tuple[Array]:
            limits = (np.maximum(_of_one(most, np.int64), 0), _of_one(overlap, np.float32))
            score = None if least_score is None else np.reshape(least_score, 1)
            result: tuple[Array] = super()._run(boxes, scores, *limits, score, center_point_box)
            return result

    return NonMaxSuppression


def _of_one(limit: Array | None, dtype: type[np.generic]) -> Array:
    """Return a limit as a vector of one element: of zero, which is ONNX's default, if it is absent."""
    return np.zeros(1, dtype) if limit is None else np.reshape(limit, 1)
