"""Parts of tensors: what a direction takes of its arguments, and a gate of its step."""

from __future__ import annotations

import numpy as np

from intarsia.ir import Constant, Expr
from intarsia.op import call


def numbers(*values: int) -> Constant:
    """Return a vector of int64."""
    return Constant(np.array(values, np.int64))


def part(value: Expr, begin: int, end: int, axis: int) -> Expr:
    """Return the positions `begin` to `end` (exclusive) of an axis."""
    if isinstance(value, Constant):
        index = [slice(None)] * value.data.ndim
        index[axis] = slice(begin, end)
        return Constant(np.ascontiguousarray(value.data[tuple(index)]))
    return call("Slice", value, numbers(begin), numbers(end), numbers(axis))


def row(value: Expr, at: int) -> Expr:
    """Return one position of the first axis, which vanishes."""
    if isinstance(value, Constant):
        return Constant(value.data[at])
    return call("Squeeze", part(value, at, at + 1, 0), numbers(0))


def transposed(matrix: Expr) -> Expr:
    """Return a matrix with rows and columns exchanged."""
    if isinstance(matrix, Constant):
        return Constant(np.ascontiguousarray(matrix.data.T))
    return call("Transpose", matrix, perm=(1, 0))
