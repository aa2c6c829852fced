"""Loop for the reference toolchain: onnx 1.23's own cannot stack no rows, scalars, or matrices."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from intarsia.runtime.kernel import Array

if TYPE_CHECKING:
    from onnx import TypeProto
    from onnx.reference.op_run import OpRun


@cache
def loop_operator() -> type[OpRun]:
    """The operator as a class for onnx's evaluator, in place of its own."""
    from onnx.reference.ops import op_loop

    class Loop(op_loop.Loop):  # type: ignore[misc]  # onnx is not typed for us
        def _run(
            self,
            trips: Array | None,
            condition: Array | None,
            *initial: Any,
            context: dict[str, Any] | None = None,
            attributes: Any = None,
            bindings: Any = None,
            **_: Any,
        ) -> tuple[Any, ...]:
            names, states, rows, count = self.body.input_names, list(initial), [], 0
            goes_on = condition is None or bool(condition)
            while goes_on and (trips is None or count < trips):
                inputs = dict(context or {})
                inputs.update(
                    zip(names, (np.array(count, np.int64), np.array(goes_on), *states), strict=True)
                )
                again, *results = self._run_body(inputs, attributes=attributes, bindings=bindings)
                goes_on = condition is None or bool(again)
                states, count = results[: len(states)], count + 1
                rows.append(results[len(states) :])
            types = self.body.output_types[1 + len(states) :]
            return (*states, *(_stacked([row[i] for row in rows], type_) for i, type_ in enumerate(types)))

    return Loop


def _stacked(rows: list[Array], type_: TypeProto) -> Array:
    """The rows as one array; of no rows, what the body declares says the shape.

    Raises:
        ValueError: There are no rows, and no declared shape.
    """
    from onnx import helper

    if rows:
        return np.stack(rows)
    tensor = type_.tensor_type
    if not tensor.elem_type or not tensor.HasField("shape"):
        raise ValueError("a Loop that never ran has rows of unknown shape")
    shape = [dim.dim_value for dim in tensor.shape.dim]  # 0 where it is not known: nothing is in it anyway
    return np.empty((0, *shape), helper.tensor_dtype_to_np_dtype(tensor.elem_type))
