"""Functions on tensor expressions: reductions, choices, comparisons, intrinsics."""

from __future__ import annotations

from collections.abc import Sequence

from intarsia.ir import DType
from intarsia.ir.prim_func import ArithOp, Intrinsic
from intarsia.ir.scalar_types import INTRINSICS
from intarsia.native.te.combiner import Combiner, Reduction
from intarsia.native.te.expression import Expression, Operand, arith, literal, typed, with_tensors
from intarsia.native.te.iter_var import IterVar
from intarsia.support.errors import UsageError

IF_THEN_ELSE = "if_then_else"
"""An intrinsic of tensor expressions only: lowering makes IfThenElse statements of it."""

Axes = IterVar | Sequence[IterVar]


def const(value: float | bool, dtype: DType = DType.FLOAT32) -> Expression:
    """Return a number as an expression.

    Raises:
        UsageError: The type has no such number.
    """
    return literal(value, dtype)


def sum(value: Expression, axis: Axes) -> Reduction:  # noqa: A001 - the field's name
    """Return the sum over axes; 0 of nothing."""
    dtype = value.dtype
    combiner = Combiner.of("sum", [(0, dtype)], lambda lhs, rhs: (lhs[0] + rhs[0],))
    return Reduction(combiner, (value,), _axes(axis))


def prod(value: Expression, axis: Axes) -> Reduction:
    """Return the product over axes; 1 of nothing."""
    combiner = Combiner.of("prod", [(1, value.dtype)], lambda lhs, rhs: (lhs[0] * rhs[0],))
    return Reduction(combiner, (value,), _axes(axis))


def max(value: Expression, axis: Axes) -> Reduction:  # noqa: A001 - the field's name
    """Return the maximum over axes, NaN if there is one; of no elements, the least value of the type."""
    identity = [(lowest(value.dtype), value.dtype)]
    combiner = Combiner.of("max", identity, lambda lhs, rhs: (maximum(lhs[0], rhs[0]),))
    return Reduction(combiner, (value,), _axes(axis))


def min(value: Expression, axis: Axes) -> Reduction:  # noqa: A001 - the field's name
    """Return the minimum over axes, NaN if there is one; of no elements, the largest value of the type."""
    identity = [(highest(value.dtype), value.dtype)]
    combiner = Combiner.of("min", identity, lambda lhs, rhs: (minimum(lhs[0], rhs[0]),))
    return Reduction(combiner, (value,), _axes(axis))


def reduce(combiner: Combiner, values: Sequence[Expression], axis: Axes) -> Reduction:
    """Return a reduction by a combiner, of several values at once if the combiner has several.

    Raises:
        UsageError: The values' number or types are not the combiner's.
    """
    expected = [value_type.dtype for value_type in combiner.identity]
    given = [value_type.dtype for value_type in values]
    if given != expected:
        text = (
            ", ".join(value_type.value for value_type in given),
            ", ".join(value_type.value for value_type in expected),
        )
        raise UsageError(f"combiner {combiner.name}: found values of {text[0]}; expected {text[1]}")
    return Reduction(combiner, tuple(values), _axes(axis))


def maximum(lhs: Operand, rhs: Operand) -> Expression:
    """Return the larger value; NaN if one is NaN."""
    return arith(ArithOp.MAX, lhs, rhs)


def minimum(lhs: Operand, rhs: Operand) -> Expression:
    """Return the lesser value; NaN if one is NaN."""
    return arith(ArithOp.MIN, lhs, rhs)


def equal(lhs: Operand, rhs: Operand) -> Expression:
    """Return whether two values are equal; NaN equals nothing."""
    return arith(ArithOp.EQ, lhs, rhs)


def not_equal(lhs: Operand, rhs: Operand) -> Expression:
    """Return whether two values differ; NaN differs from everything."""
    return arith(ArithOp.NE, lhs, rhs)


def logical_and(*values: Expression) -> Expression:
    """Return whether all bools hold; all are evaluated."""
    result, *more = values
    for operand in more:
        result = arith(ArithOp.AND, result, operand)
    return result


def logical_or(*values: Expression) -> Expression:
    """Return whether one of the bools holds; all are evaluated."""
    result, *more = values
    for operand in more:
        result = arith(ArithOp.OR, result, operand)
    return result


def logical_not(value: Expression) -> Expression:
    """Return whether a bool does not hold."""
    return arith(ArithOp.NOT, value)


def select(condition: Expression, then: Operand, otherwise: Operand) -> Expression:
    """Return one of two values; both are evaluated, so both must be in bounds (else `if_then_else`)."""
    return arith(ArithOp.SELECT, condition, *typed((then, otherwise)))


def if_then_else(condition: Expression, then: Operand, otherwise: Operand) -> Expression:
    """Return one of two values; only that one is evaluated.

    Raises:
        UsageError: The condition is no bool, or the values differ in type.
    """
    first, second = typed((then, otherwise))
    chosen = select(condition, first, second)
    scalars = condition.scalar, first.scalar, second.scalar
    return Expression(Intrinsic(IF_THEN_ELSE, scalars, first.dtype), chosen.tensors)


def call(name: str, *args: Operand) -> Expression:
    """Return an intrinsic of `ir.scalar_types.INTRINSICS` by name: "exp", "erf", "pow", "shift_left" ...

    Raises:
        UsageError: There is none, or the operands do not fit.
    """
    operands = typed(args)
    signature = INTRINSICS.get(name)
    result = None if signature is None else signature.result
    return with_tensors(Intrinsic(name, (), result or operands[0].dtype), operands)


def exp(value: Expression) -> Expression:
    """Return the exponential."""
    return call("exp", value)


def log(value: Expression) -> Expression:
    """Return the natural logarithm."""
    return call("log", value)


def sqrt(value: Expression) -> Expression:
    """Return the square root."""
    return call("sqrt", value)


def tanh(value: Expression) -> Expression:
    """Return the hyperbolic tangent."""
    return call("tanh", value)


def erf(value: Expression) -> Expression:
    """Return the error function."""
    return call("erf", value)


def power(base: Operand, exponent: Operand) -> Expression:
    """Return a float to the power of a float."""
    return call("pow", base, exponent)


def lowest(dtype: DType) -> float:
    """Return the least value of a type: minus infinity, the least integer, False."""
    if dtype.is_float:
        return float("-inf")
    return 0 if dtype is DType.BOOL else _limits(dtype)[0]


def highest(dtype: DType) -> float:
    """Return the largest value of a type: infinity, the largest integer, True."""
    if dtype.is_float:
        return float("inf")
    return 1 if dtype is DType.BOOL else _limits(dtype)[1]


def _limits(dtype: DType) -> tuple[int, int]:
    import numpy as np

    limits = np.iinfo(dtype.value)
    return int(limits.min), int(limits.max)


def _axes(axis: Axes) -> tuple[IterVar, ...]:
    return (axis,) if isinstance(axis, IterVar) else tuple(axis)
