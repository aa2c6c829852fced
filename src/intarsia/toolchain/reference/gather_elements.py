"""GatherElements for the reference toolchain: onnx 1.23 fails where indices cover a part of the data."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from intarsia.op.plain_values import gathered_elements
from intarsia.runtime.kernel import Array

if TYPE_CHECKING:
    from onnx.reference.op_run import OpRun


@cache
def gather_elements_operator() -> type[OpRun]:
    """Return the operator as onnx's evaluator needs it, in place of its own."""
    from onnx.reference.ops import op_gather_elements

    class GatherElements(op_gather_elements.GatherElements):  # type: ignore[misc]  # onnx is not typed for us
        def _run(self, data: Array, indices: Array, axis: int) -> tuple[Array]:
            return (gathered_elements(data, indices, axis),)

    return GatherElements
