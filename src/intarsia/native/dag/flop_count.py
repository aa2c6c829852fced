"""Number of floating-point operations of a DAG."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final, assert_never

from intarsia.ir import DType
from intarsia.ir.loop_walk import operands, scalar_post_order
from intarsia.ir.prim_func import Arith, ArithOp, Intrinsic, Scalar
from intarsia.ir.scalar_types import scalar_dtype
from intarsia.native.te.op_attrs import FLOP
from intarsia.native.te.tensor import ComputeOp, ExternOp, Operation, PlaceholderOp

UNKNOWN = -1
"""Result of `flop_count` if the count of an operation is unknown."""
_PRODUCTS: Final = {"dot_u8s8": 4, "dot_s16": 2, "dot_bf16": 2}
"""Products that a dot of two words adds up."""


def flop_count(ops: Iterable[Operation]) -> int:
    """Count the arithmetic, comparisons and logic on values of the class of the results, such as floats.

    So index arithmetic does not count. Of casts, loads and functions such as `exp` only the arguments count.
    A dot of words counts as its products and their sums, though it is one instruction on some machines.
    Of `select` the more expensive value counts. An integer attribute FLOP of an operation replaces its count.

    Returns:
        The count, or UNKNOWN if there is an ExternOp without such an attribute.
    """
    counts = [_op_count(op) for op in ops]
    return UNKNOWN if UNKNOWN in counts else sum(counts)


def products_of_lane(ops: Iterable[Operation]) -> int:
    """Return the most products that a lane of an instruction adds up: 1 without dots of words."""
    bodies = (body for op in ops if isinstance(op, ComputeOp) for body in op.bodies)
    scalars = (scalar for body in bodies for scalar, _ in scalar_post_order(body))
    return max(
        (_PRODUCTS.get(scalar.name, 1) for scalar in scalars if isinstance(scalar, Intrinsic)), default=1
    )


def _op_count(op: Operation) -> int:
    given = op.attrs.get(FLOP)
    if isinstance(given, int):
        return given
    match op:
        case PlaceholderOp():
            return 0
        case ExternOp():
            return UNKNOWN
        case ComputeOp():
            return math.prod(op.shape) * _element_count(op)
        case _:
            assert_never(op)


def _element_count(op: ComputeOp) -> int:
    counts = [_scalar_count(body, dtype) for body, dtype in zip(op.bodies, op.dtypes, strict=True)]
    if op.combiner is None:
        return sum(counts)
    combining = [
        _scalar_count(scalar, dtype) for scalar, dtype in zip(op.combiner.result, op.dtypes, strict=True)
    ]
    return math.prod(axis.extent for axis in op.reduce_axes) * (sum(counts) + sum(combining))


def _scalar_count(root: Scalar, result: DType) -> int:
    stack: list[int] = []
    for scalar, _ in scalar_post_order(root):
        count = len(operands(scalar))
        below = stack[len(stack) - count :]
        del stack[len(stack) - count :]
        match scalar:
            case Arith(op=ArithOp.SELECT):
                stack.append(below[0] + max(below[1:]))
            case Arith():
                stack.append(sum(below) + _is_counted(scalar, result))
            case Intrinsic(name=name) if name in _PRODUCTS:
                stack.append(sum(below) + 2 * _PRODUCTS[name] - 1)
            case _:
                stack.append(sum(below))
    return stack[0]


def _is_counted(scalar: Arith, result: DType) -> int:
    types = [scalar_dtype(operand) for operand in scalar.operands]
    return int(any(dtype is not None and _class(dtype) == _class(result) for dtype in types))


def _class(dtype: DType) -> str:
    if dtype.is_float:
        return "float"
    return "bool" if dtype is DType.BOOL else dtype.value.rstrip("0123456789")
