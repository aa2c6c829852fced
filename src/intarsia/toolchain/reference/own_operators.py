"""Operators of the domain "intarsia" for onnx.reference, but for those on tokens."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from onnx.reference.op_run import OpRun


@cache
def own_operators() -> tuple[type[OpRun], ...]:
    """Return the classes, by the naming rule of the evaluator."""
    from onnx.reference.op_run import OpRun

    class on_device(OpRun):  # type: ignore[misc]  # noqa: N801 - onnx is not typed for us; the operator's name
        op_domain = "intarsia"

        def _run(self, x: Any, **_: Any) -> tuple[Any]:
            return (x,)

    class device_copy(OpRun):  # type: ignore[misc]  # noqa: N801 - as above
        op_domain = "intarsia"

        def _run(self, x: Any, **_: Any) -> tuple[Any]:
            return (x,)

    class layout_transform(OpRun):  # type: ignore[misc]  # noqa: N801 - as above
        op_domain = "intarsia"

        def _run(self, x: Any, src_layout: str = "", dst_layout: str = "", **_: Any) -> tuple[Any]:
            from intarsia.op.intarsia_ops import layout_permutation

            return (np.ascontiguousarray(x.transpose(layout_permutation(src_layout, dst_layout))),)

    class tree_ensemble(OpRun):  # type: ignore[misc]  # noqa: N801 - as above
        op_domain = "intarsia"

        def _run(self, *args: Any, aggregate: str = "SUM", n_targets: int = 1, **_: Any) -> tuple[Any]:
            from intarsia.op.tree_ensemble_op import tree_ensemble_value

            return (tree_ensemble_value(*args, aggregate=aggregate, n_targets=n_targets),)

    class simulated_quantize(OpRun):  # type: ignore[misc]  # noqa: N801 - as above
        op_domain = "intarsia"

        def _run(self, x: Any, *facts: Any, axis: int = -1, **_: Any) -> tuple[Any]:
            from intarsia.op.simulated_quantize_op import simulated_quantize_value

            scale, zero_point = (*facts, None, None)[:2]
            return (simulated_quantize_value(x, scale, zero_point, axis),)

    return on_device, device_copy, layout_transform, simulated_quantize, tree_ensemble
