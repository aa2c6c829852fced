"""Results of a region whose number of rows is known only at run time: NonZero and NonMaxSuppression.

Inside the region such a result is a vector with room for every row that there can be (op/counted_rows_op); at
the region's border the rows are taken out of it. An operator behind such a result has no native kernel, as
its shapes are not known: it runs elsewhere.
"""

from __future__ import annotations

import numpy as np

from intarsia.ir import ABSENT, Call, Constant, Expr, Function, Op, TensorType, Tuple, with_fields
from intarsia.ir.rule_errors import NamedFailure
from intarsia.op import call
from intarsia.op.counted_rows_op import BOX_WIDTH, COUNTED_BOXES, COUNTED_INDICES
from intarsia.op.known_value import known_value
from intarsia.op.opset import INTARSIA_DOMAIN
from intarsia.toolchain.native.counted_result import CountedResult


def with_counted_results(function: Function) -> tuple[Function, tuple[CountedResult, ...]]:
    """Return the function with counted vectors as results, and which results those are.

    Args:
        function: Typed, in graph normal form.
    """
    fields = function.body.fields if isinstance(function.body, Tuple) else (function.body,)
    vectors: dict[Expr, tuple[Expr, int, bool]] = {}
    for field in fields:
        with NamedFailure(field, "compiled"):
            vector = _counted(field)
        if vector is not None:
            vectors[field] = vector
    if not vectors:
        return function, ()
    counted = tuple(
        CountedResult(position, *vectors[field][1:])
        for position, field in enumerate(fields)
        if field in vectors
    )
    results = tuple(vectors[field][0] if field in vectors else field for field in fields)
    body = Tuple(results) if isinstance(function.body, Tuple) else results[0]
    return Function(function.params, body, function.attrs, span=function.span), counted


def counted_obstacle(operator: Call) -> str | None:
    """Why NonZero or NonMaxSuppression cannot be a result of a region; None if it can."""
    types = [arg.checked_type for arg in operator.args if arg.checked_type != ABSENT]
    if not all(isinstance(type_, TensorType) and type_.is_static for type_ in types):
        return (
            f"operator {str(operator.op)!r} has no native kernel for a shape that is known only at run time"
        )
    if str(operator.op) == "NonZero" and types and not types[0].static_shape:  # type: ignore[union-attr]
        return "operator 'NonZero' has no native kernel for a scalar"
    ranks = [len(type_.static_shape) for type_ in types[:2] if isinstance(type_, TensorType)]
    if str(operator.op) == "NonMaxSuppression" and ranks != [3, 3]:
        return "operator 'NonMaxSuppression' has no native kernel for boxes or scores of another rank than 3"
    return None


def is_counted(expr: Expr) -> bool:
    """Whether an expression is a call of an operator whose rows are counted at run time."""
    return isinstance(expr, Call) and isinstance(expr.op, Op) and str(expr.op) in _VECTORS


def _counted(result: Expr) -> tuple[Expr, int, bool] | None:
    """The vector of a result, the numbers in its rows, and whether rows become columns."""
    is_turned = _is_turned(result)
    source = result.args[0] if is_turned and isinstance(result, Call) else result
    if not is_counted(source):
        return None
    assert isinstance(source, Call)
    if counted_obstacle(source) is not None:
        return None
    vector, width, is_transposed = _VECTORS[str(source.op)](source)
    return with_fields(vector, span=source.span), width, is_transposed != is_turned


def _is_turned(expr: Expr) -> bool:
    """Whether an expression transposes a matrix."""
    is_transpose = isinstance(expr, Call) and isinstance(expr.op, Op) and str(expr.op) == "Transpose"
    return is_transpose and isinstance(expr, Call) and expr.attrs.get("perm", (1, 0)) == (1, 0)


def _indices(operator: Call) -> tuple[Call, int, bool]:
    x = operator.args[0]
    assert isinstance(x.checked_type, TensorType)
    return call(COUNTED_INDICES, x, domain=INTARSIA_DOMAIN), len(x.checked_type.static_shape), True


def _boxes(operator: Call) -> tuple[Call, int, bool]:
    boxes, scores = operator.args[:2]
    limit, overlap, score = (_optional(operator, position) for position in (2, 3, 4))
    assert isinstance(scores.checked_type, TensorType)
    most = scores.checked_type.static_shape[2]
    bound = 0 if limit is None else _known_limit(limit)
    vector = call(
        COUNTED_BOXES,
        boxes,
        scores,
        limit or Constant(np.zeros((), np.int64)),
        overlap or Constant(np.zeros((), np.float32)),
        score or Constant(np.zeros((), np.float32)),
        domain=INTARSIA_DOMAIN,
        most=most if bound is None else max(0, min(most, bound)),
        filtered=int(score is not None),
        center_point_box=operator.attrs.get("center_point_box", 0),
    )
    return vector, BOX_WIDTH, False


def _optional(operator: Call, position: int) -> Expr | None:
    if position >= len(operator.args) or operator.args[position].checked_type == ABSENT:
        return None
    return operator.args[position]


def _known_limit(limit: Expr) -> int | None:
    value = limit.data if isinstance(limit, Constant) else known_value(limit)
    return None if value is None else int(value.reshape(-1)[0])


_VECTORS = {"NonZero": _indices, "NonMaxSuppression": _boxes}
