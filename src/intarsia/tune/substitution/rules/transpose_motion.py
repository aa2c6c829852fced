"""Transposes that meet, and that move through operators which do not mind the order of axes."""

from __future__ import annotations

from intarsia.ir import Call, Expr
from intarsia.ir.pattern import is_op
from intarsia.op import call
from intarsia.op.layout import compose, inverse
from intarsia.passes.rules.tensor_facts import operator_name
from intarsia.tune.substitution.building import (
    BINARY,
    ELEMENTWISE,
    argument_calls,
    axis_of,
    called,
    permutation,
    rank_of,
)
from intarsia.tune.substitution.rule import A, B, substitution

_TRANSPOSE = is_op("Transpose")
_OVER_AXIS = ("Softmax", "LogSoftmax")


@substitution(is_op(*ELEMENTWISE)(_TRANSPOSE(A).named("b")))
def elementwise_before_transpose(root: Call, a: Expr, b: Call) -> Expr:
    """An elementwise operator of a transpose as the transpose of its result.

    Before:
        def @main(%a: Tensor[(N, 2, 3), float32]) { Sigmoid(Transpose(%a, perm=[1, 2, 0])) }
    After:
        def @main(%a: Tensor[(N, 2, 3), float32]) { Transpose(Sigmoid(%a), perm=[1, 2, 0]) }
    """
    return called("Transpose", b.attrs, called(operator_name(root), root.attrs, a))


@substitution(_TRANSPOSE(is_op(*ELEMENTWISE)(A).named("b")))
def elementwise_behind_transpose(root: Call, a: Expr, b: Call) -> Expr:
    """The transpose of an elementwise operator's result as the operator of the transpose.

    Before:
        def @main(%a: Tensor[(N, 2, 3), float32]) { Transpose(Sigmoid(%a), perm=[1, 2, 0]) }
    After:
        def @main(%a: Tensor[(N, 2, 3), float32]) { Sigmoid(Transpose(%a, perm=[1, 2, 0])) }
    """
    return called(operator_name(b), b.attrs, called("Transpose", root.attrs, a))


@substitution(is_op(*BINARY)(_TRANSPOSE(A).named("left"), _TRANSPOSE(B).named("right")))
def pairs_before_transpose(root: Call, a: Expr, b: Expr, left: Call, right: Call) -> Expr | None:
    """Two tensors transposed alike and combined as the transpose of the combination.

    Before:
        def @main(%a: Tensor[(N, 2, 3), float32], %b: Tensor[(N, 1, 3), float32]) {
          Mul(Transpose(%a, perm=[1, 2, 0]), Transpose(%b, perm=[1, 2, 0]))
        }
    After:
        def @main(%a: Tensor[(N, 2, 3), float32], %b: Tensor[(N, 1, 3), float32]) {
          Transpose(Mul(%a, %b), perm=[1, 2, 0])
        }
    """
    order = permutation(left)
    if order is None or order != permutation(right):
        return None
    return call("Transpose", called(operator_name(root), root.attrs, a, b), perm=order)


@substitution(_TRANSPOSE(is_op(*BINARY)(A, B).named("c")))
def pairs_behind_transpose(root: Call, a: Expr, b: Expr, c: Call) -> Expr | None:
    """The transpose of two combined tensors as the combination of their transposes.

    Before:
        def @main(%a: Tensor[(N, 2, 3), float32], %b: Tensor[(N, 1, 3), float32]) {
          Transpose(Mul(%a, %b), perm=[1, 2, 0])
        }
    After:
        def @main(%a: Tensor[(N, 2, 3), float32], %b: Tensor[(N, 1, 3), float32]) {
          Mul(Transpose(%a, perm=[1, 2, 0]), Transpose(%b, perm=[1, 2, 0]))
        }
    """
    order = permutation(root)
    if order is None or not rank_of(a) == rank_of(b) == len(order):
        return None
    left, right = (call("Transpose", each, perm=order) for each in (a, b))
    return called(operator_name(c), c.attrs, left, right)


@substitution(_TRANSPOSE(_TRANSPOSE(A).named("b")))
def merge_transposes(root: Call, a: Expr, b: Call) -> Expr | None:
    """Two transposes as one.

    Before:
        def @main(%a: Tensor[(N, 2, 3), float32]) {
          Transpose(Transpose(%a, perm=[1, 2, 0]), perm=[0, 2, 1])
        }
    After:
        def @main(%a: Tensor[(N, 2, 3), float32]) { Transpose(%a, perm=[1, 0, 2]) }
    """
    outer, inner = permutation(root), permutation(b)
    if outer is None or inner is None:
        return None
    order = compose(inner, outer)
    return a if order == tuple(range(len(order))) else call("Transpose", a, perm=order)


@substitution(is_op(*_OVER_AXIS)(_TRANSPOSE(A).named("b")))
def softmax_before_transpose(root: Call, a: Expr, b: Call) -> Expr | None:
    """A softmax along an axis of a transpose as the transpose of a softmax along the axis it was.

    Before:
        def @main(%a: Tensor[(N, 2, 3), float32]) { Softmax(Transpose(%a, perm=[1, 2, 0]), axis=1) }
    After:
        def @main(%a: Tensor[(N, 2, 3), float32]) { Transpose(Softmax(%a, axis=2), perm=[1, 2, 0]) }
    """
    order = permutation(b)
    if order is None or rank_of(a) < 1:
        return None
    axis = order[axis_of(root, len(order), -1)]
    return call("Transpose", call(operator_name(root), a, axis=axis), perm=order)


@substitution(_TRANSPOSE(is_op(*_OVER_AXIS)(A).named("b")))
def softmax_behind_transpose(root: Call, a: Expr, b: Call) -> Expr | None:
    """The transpose of a softmax as a softmax of the transpose.

    Before:
        def @main(%a: Tensor[(N, 2, 3), float32]) { Transpose(Softmax(%a, axis=2), perm=[1, 2, 0]) }
    After:
        def @main(%a: Tensor[(N, 2, 3), float32]) { Softmax(Transpose(%a, perm=[1, 2, 0]), axis=1) }
    """
    order = permutation(root)
    if order is None or rank_of(a) < 1:
        return None
    axis = inverse(order)[axis_of(b, len(order), -1)]
    return call(operator_name(b), call("Transpose", a, perm=order), axis=axis)


@substitution(is_op("Concat")(...))
def concat_before_transpose(root: Call) -> Expr | None:
    """A concatenation of tensors transposed alike as the transpose of a concatenation.

    Before:
        def @main(%a: Tensor[(N, 2, 3), float32], %b: Tensor[(N, 1, 3), float32]) {
          Concat(Transpose(%a, perm=[1, 2, 0]), Transpose(%b, perm=[1, 2, 0]), axis=0)
        }
    After:
        def @main(%a: Tensor[(N, 2, 3), float32], %b: Tensor[(N, 1, 3), float32]) {
          Transpose(Concat(%a, %b, axis=1), perm=[1, 2, 0])
        }
    """
    calls = argument_calls("Transpose", root)
    order = permutation(calls[0]) if len(calls) > 1 else None
    if order is None:
        return None
    axis = order[axis_of(root, len(order))]
    return call(
        "Transpose", call("Concat", *(transpose.args[0] for transpose in calls), axis=axis), perm=order
    )


@substitution(_TRANSPOSE(is_op("Concat")(...).named("b")))
def concat_behind_transpose(root: Call, b: Call) -> Expr | None:
    """The transpose of a concatenation as a concatenation of transposes.

    Before:
        def @main(%a: Tensor[(N, 2, 3), float32], %b: Tensor[(N, 1, 3), float32]) {
          Transpose(Concat(%a, %b, axis=1), perm=[1, 2, 0])
        }
    After:
        def @main(%a: Tensor[(N, 2, 3), float32], %b: Tensor[(N, 1, 3), float32]) {
          Concat(Transpose(%a, perm=[1, 2, 0]), Transpose(%b, perm=[1, 2, 0]), axis=0)
        }
    """
    order = permutation(root)
    if order is None:
        return None
    axis = inverse(order)[axis_of(b, len(order))]
    return call("Concat", *(call("Transpose", each, perm=order) for each in b.args), axis=axis)
