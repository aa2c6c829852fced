"""Matrix products with split operands: the scores of both parts side by side, the weighted values added.

    Q (K K')^T = (Q K^T  Q K'^T)          (P P') (V; V') = P V + P' V'

The cache is read where it lies: nothing of its size is written.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from intarsia.ir import Constant, Expr
from intarsia.op import call
from intarsia.passes.decoding.split_value import SplitValue
from intarsia.passes.rules.tensor_facts import dims_of

_TO_END: Final = np.iinfo(np.int64).max


def split_product(left: Expr, right: SplitValue) -> Expr | None:
    """Return the product of a tensor and a split value of equal rank, None for other forms."""
    rank = len(dims_of(right.past) or ())
    if len(dims_of(left) or ()) != rank or rank < 3:
        return None
    if right.groups > 1 and (rank != 4 or not isinstance((dims_of(right.past) or ())[1], int)):
        return None
    if right.scale is not None:
        left = call("Mul", left, right.scale)
    if right.axis == rank - 1:
        parts = [_grouped_product(left, part, right) for part in (right.past, right.new)]
        return call("Concat", *parts, axis=-1)
    if right.axis != rank - 2:
        return None
    length = size_of(right.past, right.axis)
    of_past, of_new = (_columns(left, *span) for span in ((ints(0), length), (length, ints(_TO_END))))
    return call(
        "Add",
        _grouped_product(of_past, right.past, right),
        _grouped_product(of_new, right.new, right),
    )


def size_of(tensor: Expr, axis: int) -> Expr:
    """Return the size of an axis as a tensor (1,)."""
    return call("Shape", tensor, start=axis, end=axis + 1)


def ints(*values: int) -> Constant:
    """Return a vector of int64."""
    return Constant(np.array(values, np.int64))


def _columns(tensor: Expr, start: Expr, end: Expr) -> Expr:
    return call("Slice", tensor, start, end, ints(-1))


def _grouped_product(left: Expr, right: Expr, value: SplitValue) -> Expr:
    """Multiply (b, heads, n, k) by (b, heads / groups, k, m): heads of a group become rows of one product."""
    groups, shared = value.groups, (dims_of(value.past) or ())[1]
    if groups == 1:
        return call("MatMul", left, right)
    assert isinstance(shared, int), "split_product has seen to it"
    folded = call("Reshape", left, call("Concat", ints(0, shared, -1), size_of(left, 3), axis=0))
    product = call("MatMul", folded, right)
    shape = call("Concat", ints(0, shared * groups), size_of(left, 2), size_of(right, 3), axis=0)
    return call("Reshape", product, shape)
