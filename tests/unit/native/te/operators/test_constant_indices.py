"""Constant indices that are out of range: refused when a program is built, as they would be clamped."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from intarsia.ir import Call, Constant, DType, Expr, Function, IRModule, TensorType, Var
from intarsia.native.te.operators import reason_not_covered
from intarsia.op import call
from intarsia.op.infer import infer_types

X = (4, 5)


def reason(op: str, indices: Any, *updates: int, **attrs: Any) -> str | None:
    x = Var("x", checked_type=TensorType(X, DType.FLOAT32))
    others: list[Expr] = [Constant(np.array(indices, np.int64))]
    params = [x]
    if updates:
        params.append(Var("u", checked_type=TensorType(updates, DType.FLOAT32)))
        others.append(params[-1])
    module = infer_types(IRModule.from_expr(Function(tuple(params), call(op, x, *others, **attrs))))
    body = module["main"].body
    assert isinstance(body, Call)
    return reason_not_covered(body)


@pytest.mark.parametrize(
    ("op", "right", "wrong", "index", "extent", "updates", "attrs"),
    [
        ("Gather", [0, -5, 4], [0, 5], 5, 5, (), {"axis": 1}),
        ("Gather", -4, -5, -5, 4, (), {}),
        ("GatherElements", [[3, -4]], [[3, 4]], 4, 4, (), {}),
        ("GatherND", [[3, 4]], [[4, 3]], 4, 4, (), {}),
        ("GatherND", [[3, -5]], [[3, -6]], -6, 5, (), {}),
        ("ScatterElements", [[3, -4]], [[-5, 3]], -5, 4, (1, 2), {}),
        ("ScatterND", [[3]], [[7]], 7, 4, (1, 5), {}),
    ],
)
def test_an_index_out_of_range(
    op: str, right: Any, wrong: Any, index: int, extent: int, updates: tuple[int, ...], attrs: dict[str, int]
) -> None:
    assert reason(op, right, *updates, **attrs) is None
    assert reason(op, wrong, *updates, **attrs) == (
        f"operator {op!r} has no native kernel for the index {index} of an axis of {extent} elements"
    )
