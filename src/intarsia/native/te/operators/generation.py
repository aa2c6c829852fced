"""Tensors of positions and constants: ConstantOfShape, EyeLike, OneHot, Range, Shape, Size, Trilu."""

from __future__ import annotations

import math
from collections.abc import Sequence

from intarsia.ir import Constant, DType
from intarsia.native.te.compute import compute
from intarsia.native.te.expression import Expression
from intarsia.native.te.functions import const, equal, select
from intarsia.native.te.operators.compute_call import ComputeCall
from intarsia.native.te.operators.compute_rule import compute_rule
from intarsia.native.te.operators.float32_arithmetic import in_float32
from intarsia.native.te.operators.index_arithmetic import ZERO, front
from intarsia.native.te.tensor import Tensor


@compute_rule("ConstantOfShape")
def constant_of_shape(call: ComputeCall) -> Sequence[Tensor]:
    """Declare a tensor of one number."""
    value = call.attrs.get("value")
    number = value.data.reshape(-1)[0].item() if isinstance(value, Constant) else 0
    return [compute(call.shape, lambda *_: const(number, call.output_type.dtype), call.name)]


@compute_rule("EyeLike")
def eye_like(call: ComputeCall) -> Sequence[Tensor]:
    """Declare ones on a diagonal."""
    offset = call.integer("k", 0)
    return [compute(call.shape, lambda i, j: equal(j, i + offset).astype(call.output_type.dtype), call.name)]


@compute_rule("OneHot")
def one_hot(call: ComputeCall) -> Sequence[Tensor]:
    """Declare the second value at the index, the first elsewhere; indices outside the depth set nothing."""
    indices, values = call.input(0), call.input(2)
    axis = front(call.integer("axis", -1), len(call.shape))
    depth = call.shape[axis]

    def element(*i: Expression) -> Expression:
        index = indices[(*i[:axis], *i[axis + 1 :])].astype(DType.INT64)
        is_here = equal(select(index < 0, index + depth, index), i[axis])
        return values[is_here.astype(DType.INT64)]

    return [compute(call.shape, element, call.name)]


@compute_rule("Range")
@in_float32
def range_(call: ComputeCall) -> Sequence[Tensor]:
    """Declare numbers at equal distances."""
    start, step = call.input(0), call.input(2)
    return [
        compute(
            call.shape,
            lambda i: _only(start) + i.astype(start.dtype) * _only(step),
            call.name,
        )
    ]


@compute_rule("Shape")
def shape(call: ComputeCall) -> Sequence[Tensor]:
    """Declare the extents of a tensor, whose elements are not read."""
    extents = call.input(0).shape[call.integer("start", 0) :]
    return [_listed(extents[: call.shape[0]], call.name)]


@compute_rule("Size")
def size(call: ComputeCall) -> Sequence[Tensor]:
    """Declare the number of elements of a tensor, which are not read."""
    count = math.prod(call.input(0).shape)
    return [compute((), lambda: const(count, DType.INT64), call.name)]


@compute_rule("Trilu")
def trilu(call: ComputeCall) -> Sequence[Tensor]:
    """Declare the part of matrices on one side of a diagonal, zeros on the other."""
    x = call.input(0)
    is_upper = bool(call.integer("upper", 1))
    offset = _diagonal(call)

    def element(*i: Expression) -> Expression:
        row, column = i[-2] + offset, i[-1]
        return select(row <= column if is_upper else column <= row, x[i], const(0, x.dtype))

    return [compute(call.shape, element, call.name)]


def _diagonal(call: ComputeCall) -> Expression | int:
    if not call.has_input(1):
        return 0
    known = call.constants[1]
    return _only(call.input(1)) if known is None else int(known.reshape(-1)[0])


def _listed(values: Sequence[int], name: str) -> Tensor:
    def element(i: Expression) -> Expression:
        value = const(values[-1] if values else 0, DType.INT64)
        for position in reversed(range(len(values) - 1)):
            value = select(i <= position, const(values[position], DType.INT64), value)
        return value

    return compute((len(values),), element, name)


def _only(x: Tensor) -> Expression:
    return x[(ZERO,) * len(x.shape)]
