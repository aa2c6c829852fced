"""Reshapes that meet, and that move through elementwise operators."""

from __future__ import annotations

from intarsia.ir import Call, Expr
from intarsia.ir.pattern import is_constant, is_op
from intarsia.op import call
from intarsia.passes.rules.tensor_facts import operator_name
from intarsia.tune.substitution.building import (
    BINARY,
    ELEMENTWISE,
    called,
    ints,
    permutation,
    same_dims,
    shape_sizes,
)
from intarsia.tune.substitution.rule import A, B, substitution

_RESHAPE = is_op("Reshape")


@substitution(is_op(*ELEMENTWISE)(_RESHAPE(A, is_constant()).named("b")))
def elementwise_before_reshape(root: Call, a: Expr, b: Call) -> Expr:
    """An elementwise operator of a reshaped tensor as its result, reshaped.

    Before:
        def @main(%a: Tensor[(N, 2, 3), float32]) { Tanh(Reshape(%a, meta[Constant][0])) }
    After:
        def @main(%a: Tensor[(N, 2, 3), float32]) { Reshape(Tanh(%a), meta[Constant][0]) }
    Constants:
        [0, 6]
    """
    return called("Reshape", b.attrs, called(operator_name(root), root.attrs, a), b.args[1])


@substitution(_RESHAPE(is_op(*ELEMENTWISE)(A).named("b"), is_constant()))
def elementwise_behind_reshape(root: Call, a: Expr, b: Call) -> Expr:
    """An elementwise operator's result, reshaped, as the operator of the reshaped tensor.

    Before:
        def @main(%a: Tensor[(N, 2, 3), float32]) { Reshape(Tanh(%a), meta[Constant][0]) }
    After:
        def @main(%a: Tensor[(N, 2, 3), float32]) { Tanh(Reshape(%a, meta[Constant][0])) }
    Constants:
        [0, 6]
    """
    return called(operator_name(b), b.attrs, called("Reshape", root.attrs, a, root.args[1]))


@substitution(
    is_op(*BINARY)(_RESHAPE(A, is_constant()).named("left"), _RESHAPE(B, is_constant()).named("right"))
)
def pairs_before_reshape(root: Call, a: Expr, b: Expr, left: Call, right: Call) -> Expr | None:
    """Two tensors of one shape, reshaped alike and combined, as their combination, reshaped.

    Before:
        def @main(%a: Tensor[(N, 2, 3), float32], %b: Tensor[(N, 2, 3), float32]) {
          Add(Reshape(%a, meta[Constant][0]), Reshape(%b, meta[Constant][0]))
        }
    After:
        def @main(%a: Tensor[(N, 2, 3), float32], %b: Tensor[(N, 2, 3), float32]) {
          Reshape(Add(%a, %b), meta[Constant][0])
        }
    Constants:
        [0, 6]
    """
    if not same_dims(a, b) or not same_dims(left, right):
        return None
    return called("Reshape", left.attrs, called(operator_name(root), root.attrs, a, b), left.args[1])


@substitution(_RESHAPE(is_op(*BINARY)(A, B).named("c"), is_constant()))
def pairs_behind_reshape(root: Call, a: Expr, b: Expr, c: Call) -> Expr | None:
    """The combination of two tensors of one shape, reshaped, as that of the reshaped tensors.

    Before:
        def @main(%a: Tensor[(N, 2, 3), float32], %b: Tensor[(N, 2, 3), float32]) {
          Reshape(Add(%a, %b), meta[Constant][0])
        }
    After:
        def @main(%a: Tensor[(N, 2, 3), float32], %b: Tensor[(N, 2, 3), float32]) {
          Add(Reshape(%a, meta[Constant][0]), Reshape(%b, meta[Constant][0]))
        }
    Constants:
        [0, 6]
    """
    if not same_dims(a, b):
        return None
    left, right = (called("Reshape", root.attrs, each, root.args[1]) for each in (a, b))
    return called(operator_name(c), c.attrs, left, right)


@substitution(_RESHAPE(_RESHAPE(A, is_constant()), is_constant()))
def merge_reshapes(root: Call, a: Expr) -> Expr | None:
    """Two reshapes as one, where the last shape is known.

    Before:
        def @main(%a: Tensor[(2, 2, 3), float32]) {
          Reshape(Reshape(%a, meta[Constant][0]), meta[Constant][1])
        }
    After:
        def @main(%a: Tensor[(2, 2, 3), float32]) { Reshape(%a, meta[Constant][2]) }
    Constants:
        [0, 6] [3, -1] [3, 4]
    """
    shape = shape_sizes(root)
    return None if shape is None or 0 in shape else call("Reshape", a, ints(*shape))


@substitution(is_op("Flatten")(A))
def flatten_as_reshape(root: Call, a: Expr) -> Expr | None:
    """A Flatten as a Reshape, where the shape is known.

    Before:
        def @main(%a: Tensor[(2, 2, 3), float32]) { Flatten(%a) }
    After:
        def @main(%a: Tensor[(2, 2, 3), float32]) { Reshape(%a, meta[Constant][0]) }
    Constants:
        [2, 6]
    """
    shape = shape_sizes(root)
    return None if shape is None or 0 in shape else call("Reshape", a, ints(*shape))


@substitution(is_op("Transpose")(A))
def transpose_as_reshape(root: Call, a: Expr) -> Expr | None:
    """A transpose that moves only axes of size 1 past others as a Reshape, which moves no data.

    Before:
        def @main(%a: Tensor[(2, 1, 3), float32]) { Transpose(%a, perm=[1, 0, 2]) }
    After:
        def @main(%a: Tensor[(2, 1, 3), float32]) { Reshape(%a, meta[Constant][0]) }
    Constants:
        [1, 2, 3]
    """
    before, after, order = shape_sizes(a), shape_sizes(root), permutation(root)
    if before is None or after is None or order is None or 0 in after:
        return None
    moved = [axis for axis in order if before[axis] != 1]
    return call("Reshape", a, ints(*after)) if moved == sorted(moved) else None
