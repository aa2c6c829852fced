"""Softmax, and what moves through it or out of it."""

from __future__ import annotations

from intarsia.ir import Call, Expr
from intarsia.ir.pattern import is_op
from intarsia.op import call
from intarsia.passes.rules.tensor_facts import constant_ints, int_attr, operator_name
from intarsia.tune.substitution.building import (
    axis_of,
    called,
    ints,
    is_float,
    rank_of,
    same_dims,
    size_along,
)
from intarsia.tune.substitution.rule import A, B, substitution

_SOFTMAX = is_op("Softmax")


@substitution(is_op("Log")(_SOFTMAX(A).named("b")))
def log_of_softmax(a: Expr, b: Call) -> Expr:
    """The logarithm of a softmax as one operator.

    Before:
        def @main(%a: Tensor[(N, 4), float32]) { Log(Softmax(%a, axis=1)) }
    After:
        def @main(%a: Tensor[(N, 4), float32]) { LogSoftmax(%a, axis=1) }
    """
    return called("LogSoftmax", b.attrs, a)


@substitution(is_op("LogSoftmax")(A))
def log_softmax_in_two(root: Call, a: Expr) -> Expr:
    """A logarithmic softmax as a softmax and a logarithm.

    Before:
        def @main(%a: Tensor[(N, 4), float32]) { LogSoftmax(%a, axis=1) }
    After:
        def @main(%a: Tensor[(N, 4), float32]) { Log(Softmax(%a, axis=1)) }
    """
    return call("Log", called("Softmax", root.attrs, a))


@substitution(is_op("Exp")(is_op("LogSoftmax")(A).named("b")))
def exponential_of_log_softmax(a: Expr, b: Call) -> Expr:
    """The exponential of a logarithmic softmax as a softmax.

    Before:
        def @main(%a: Tensor[(N, 4), float32]) { Exp(LogSoftmax(%a, axis=1)) }
    After:
        def @main(%a: Tensor[(N, 4), float32]) { Softmax(%a, axis=1) }
    """
    return called("Softmax", b.attrs, a)


@substitution(is_op("Softmax", "LogSoftmax")(is_op("Add", "Sub")(A, B).named("c")))
def shift_before_softmax(root: Call, a: Expr, b: Expr) -> Expr | None:
    """A softmax of values shifted alike along its axis as one of the values.

    Before:
        def @main(%a: Tensor[(N, 4), float32], %b: Tensor[(N, 1), float32]) {
          Softmax(Sub(%a, %b), axis=1)
        }
    After:
        def @main(%a: Tensor[(N, 4), float32], %b: Tensor[(N, 1), float32]) { Softmax(%a, axis=1) }
    """
    rank = rank_of(root)
    axis = axis_of(root, rank, -1)
    if not same_dims(a, root) or size_along(a, axis) in (None, 1):
        return None
    is_alike = rank_of(b) == 0 or size_along(b, axis - rank) == 1 or 0 <= rank_of(b) < rank - axis
    return called(operator_name(root), root.attrs, a) if is_alike else None


@substitution(_SOFTMAX(A))
def softmax_in_parts(root: Call, a: Expr) -> Expr | None:
    """A softmax as exponentials over their sum, the largest value subtracted first, for its parts to move.

    Before:
        def @main(%a: Tensor[(N, 4), float32]) { Softmax(%a, axis=1) }
    After:
        def @main(%a: Tensor[(N, 4), float32]) {
          %e = Exp(Sub(%a, ReduceMax(%a, meta[Constant][0])));
          Div(%e, ReduceSum(%e, meta[Constant][0]))
        }
    Constants:
        [1]
    """
    rank = rank_of(a)
    if rank < 1 or not size_along(a, axis_of(root, rank, -1)) or not is_float(a):
        return None
    axes = ints(axis_of(root, rank, -1))
    exponentials = call("Exp", call("Sub", a, call("ReduceMax", a, axes)))
    return call("Div", exponentials, call("ReduceSum", exponentials, axes))


@substitution(
    is_op("Div")(is_op("Exp")(A).named("b"), is_op("ReduceSum")(is_op("Exp")(A).named("b"), ...).named("c"))
)
def softmax_of_parts(a: Expr, c: Call) -> Expr | None:
    """Exponentials over their sum along an axis as a softmax.

    Before:
        def @main(%a: Tensor[(N, 4), float32]) {
          %e = Exp(%a);
          Div(%e, ReduceSum(%e, meta[Constant][0]))
        }
    After:
        def @main(%a: Tensor[(N, 4), float32]) { Softmax(%a, axis=1) }
    Constants:
        [1]
    """
    axes = constant_ints(c.args[1]) if len(c.args) == 2 else None
    if axes is None or len(axes) != 1 or not int_attr(c.attrs, "keepdims", 1) or rank_of(a) < 1:
        return None
    return call("Softmax", a, axis=axes[0] + rank_of(a) if axes[0] < 0 else axes[0])
