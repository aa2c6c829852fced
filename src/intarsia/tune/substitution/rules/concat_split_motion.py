"""Concatenations and splits that meet, and that move through other operators."""

from __future__ import annotations

from collections.abc import Sequence

from intarsia.ir import Call, Expr, TupleGetItem
from intarsia.ir.pattern import is_constant, is_op, is_tuple_get
from intarsia.op import tuple_get
from intarsia.passes.rules.tensor_facts import constant_ints, operator_name
from intarsia.tune.substitution.building import (
    BINARY,
    ELEMENTWISE,
    argument_calls,
    axis_of,
    called,
    concatenated,
    rank_of,
    same_dims,
    size_along,
)
from intarsia.tune.substitution.rule import A, B, substitution

_CONCAT, _SPLIT = is_op("Concat"), is_op("Split")


def _sizes(tensors: Sequence[Expr], axis: int) -> list[int | None]:
    return [size_along(each, axis) for each in tensors]


@substitution(is_tuple_get(_SPLIT(_CONCAT(...).named("a"), is_constant().named("b")).named("split")))
def field_of_concat(root: TupleGetItem, a: Call, b: Expr, split: Call) -> Expr | None:
    """A part of a concatenation that is one of its arguments, as the argument.

    Before:
        def @main(%a: Tensor[(N, 2), float32], %b: Tensor[(N, 3), float32]) {
          Split(Concat(Exp(%a), Exp(%b), axis=1), meta[Constant][0], axis=1, outputs=2).1
        }
    After:
        def @main(%a: Tensor[(N, 2), float32], %b: Tensor[(N, 3), float32]) { Exp(%b) }
    Constants:
        [2, 3]
    """
    rank, counts = rank_of(a), constant_ints(b)
    axis = axis_of(a, rank)
    fits = counts is not None and axis == axis_of(split, rank) and list(counts) == _sizes(a.args, axis)
    return a.args[root.index] if fits else None


@substitution(is_op(*ELEMENTWISE)(_CONCAT(...).named("a")))
def elementwise_before_concat(root: Call, a: Call) -> Expr | None:
    """An elementwise operator of a concatenation as a concatenation of the operator's results.

    Before:
        def @main(%a: Tensor[(N, 2), float32], %b: Tensor[(N, 3), float32]) { Relu(Concat(%a, %b, axis=1)) }
    After:
        def @main(%a: Tensor[(N, 2), float32], %b: Tensor[(N, 3), float32]) {
          Concat(Relu(%a), Relu(%b), axis=1)
        }
    """
    name = operator_name(root)
    return called("Concat", a.attrs, *(called(name, root.attrs, each) for each in a.args))


@substitution(_CONCAT(...))
def elementwise_behind_concat(root: Call) -> Expr | None:
    """A concatenation of one elementwise operator's results as the operator of a concatenation.

    Before:
        def @main(%a: Tensor[(N, 2), float32], %b: Tensor[(N, 3), float32]) {
          Concat(Relu(%a), Relu(%b), axis=1)
        }
    After:
        def @main(%a: Tensor[(N, 2), float32], %b: Tensor[(N, 3), float32]) { Relu(Concat(%a, %b, axis=1)) }
    """
    calls = argument_calls(ELEMENTWISE, root)
    if len(calls) < 2:
        return None
    inner = called("Concat", root.attrs, *(argument.args[0] for argument in calls))
    return called(operator_name(calls[0]), calls[0].attrs, inner)


@substitution(is_op(*ELEMENTWISE)(is_tuple_get(_SPLIT(A, is_constant()).named("split")).named("b")))
def elementwise_before_split(root: Call, a: Expr, b: TupleGetItem, split: Call) -> Expr:
    """An elementwise operator of a part as the part of the operator's result.

    Before:
        def @main(%a: Tensor[(N, 5), float32]) {
          Relu(Split(%a, meta[Constant][0], axis=1, outputs=2).1)
        }
    After:
        def @main(%a: Tensor[(N, 5), float32]) {
          Split(Relu(%a), meta[Constant][0], axis=1, outputs=2).1
        }
    Constants:
        [2, 3]
    """
    whole = called(operator_name(root), root.attrs, a)
    return tuple_get(called("Split", split.attrs, whole, split.args[1]), b.index)


@substitution(is_tuple_get(_SPLIT(is_op(*ELEMENTWISE)(A).named("b"), is_constant()).named("split")))
def elementwise_behind_split(root: TupleGetItem, a: Expr, b: Call, split: Call) -> Expr:
    """A part of an elementwise operator's result as the operator of the part.

    Before:
        def @main(%a: Tensor[(N, 5), float32]) {
          Split(Relu(%a), meta[Constant][0], axis=1, outputs=2).1
        }
    After:
        def @main(%a: Tensor[(N, 5), float32]) {
          Relu(Split(%a, meta[Constant][0], axis=1, outputs=2).1)
        }
    Constants:
        [2, 3]
    """
    field = tuple_get(called("Split", split.attrs, a, split.args[1]), root.index)
    return called(operator_name(b), b.attrs, field)


@substitution(is_op(*BINARY)(_CONCAT(...).named("a"), _CONCAT(...).named("b")))
def pairs_before_concat(root: Call, a: Call, b: Call) -> Expr | None:
    """`concat(a, b) + concat(c, d)` as `concat(a + c, b + d)`, and likewise for other pairs of elements.

    Before:
        def @main(%a: Tensor[(N, 2), float32], %b: Tensor[(N, 3), float32],
                  %c: Tensor[(N, 2), float32], %d: Tensor[(N, 3), float32]) {
          Sub(Concat(%a, %b, axis=1), Concat(%c, %d, axis=-1))
        }
    After:
        def @main(%a: Tensor[(N, 2), float32], %b: Tensor[(N, 3), float32],
                  %c: Tensor[(N, 2), float32], %d: Tensor[(N, 3), float32]) {
          Concat(Sub(%a, %c), Sub(%b, %d), axis=1)
        }
    """
    rank = rank_of(a)
    axis = axis_of(a, rank)
    if len(a.args) != len(b.args) or rank != rank_of(b) or axis != axis_of(b, rank):
        return None
    if not all(same_dims(left, right) for left, right in zip(a.args, b.args, strict=True)):
        return None
    name = operator_name(root)
    pairs = [called(name, root.attrs, left, right) for left, right in zip(a.args, b.args, strict=True)]
    return concatenated(pairs, axis)


@substitution(_CONCAT(...))
def pairs_behind_concat(root: Call) -> Expr | None:
    """`concat(a + c, b + d)` as `concat(a, b) + concat(c, d)`, and likewise for other pairs of elements.

    Before:
        def @main(%a: Tensor[(N, 2), float32], %b: Tensor[(N, 3), float32],
                  %c: Tensor[(N, 2), float32], %d: Tensor[(N, 3), float32]) {
          Concat(Sub(%a, %c), Sub(%b, %d), axis=1)
        }
    After:
        def @main(%a: Tensor[(N, 2), float32], %b: Tensor[(N, 3), float32],
                  %c: Tensor[(N, 2), float32], %d: Tensor[(N, 3), float32]) {
          Sub(Concat(%a, %b, axis=1), Concat(%c, %d, axis=1))
        }
    """
    calls = argument_calls(BINARY, root)
    if len(calls) < 2 or any(len(argument.args) != 2 or not same_dims(*argument.args) for argument in calls):
        return None
    left, right = (called("Concat", root.attrs, *(argument.args[at] for argument in calls)) for at in (0, 1))
    return called(operator_name(calls[0]), calls[0].attrs, left, right)


@substitution(_CONCAT(_CONCAT(...).named("a"), B))
def nest_concat_right(root: Call, a: Call, b: Expr) -> Expr | None:
    """`concat(concat(a, b), c)` as `concat(a, concat(b, c))`.

    Before:
        def @main(%a: Tensor[(N, 2), float32], %b: Tensor[(N, 3), float32], %c: Tensor[(N, 1), float32]) {
          Concat(Concat(%a, %b, axis=1), %c, axis=1)
        }
    After:
        def @main(%a: Tensor[(N, 2), float32], %b: Tensor[(N, 3), float32], %c: Tensor[(N, 1), float32]) {
          Concat(%a, Concat(%b, %c, axis=1), axis=1)
        }
    """
    axis = axis_of(root, rank_of(root))
    if axis != axis_of(a, rank_of(a)) or len(a.args) < 2:
        return None
    return concatenated((a.args[0], concatenated((*a.args[1:], b), axis)), axis)


@substitution(_CONCAT(A, _CONCAT(...).named("b")))
def nest_concat_left(root: Call, a: Expr, b: Call) -> Expr | None:
    """`concat(a, concat(b, c))` as `concat(concat(a, b), c)`.

    Before:
        def @main(%a: Tensor[(N, 2), float32], %b: Tensor[(N, 3), float32], %c: Tensor[(N, 1), float32]) {
          Concat(%a, Concat(%b, %c, axis=1), axis=1)
        }
    After:
        def @main(%a: Tensor[(N, 2), float32], %b: Tensor[(N, 3), float32], %c: Tensor[(N, 1), float32]) {
          Concat(Concat(%a, %b, axis=1), %c, axis=1)
        }
    """
    axis = axis_of(root, rank_of(root))
    if axis != axis_of(b, rank_of(b)) or len(b.args) < 2:
        return None
    return concatenated((concatenated((a, *b.args[:-1]), axis), b.args[-1]), axis)
