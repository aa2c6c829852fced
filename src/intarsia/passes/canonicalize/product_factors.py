"""The factors of a written-out product, whichever way it is bracketed."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.ir import Call, Constant, DType, Expr
from intarsia.passes.rules.tensor_facts import dtype_of, operator_name

_DEPTH = 3
"""Levels of Mul and Div that are opened, so that each call is looked at a bounded number of times."""
_DIGITS = {DType.FLOAT16: 11, DType.BFLOAT16: 8, DType.FLOAT32: 21, DType.FLOAT64: 21}
"""Bits to which a constant must agree with what the formula says; models write them with few digits."""


@dataclass(frozen=True, slots=True)
class Product:
    """A scalar times some tensors.

    Attributes:
        scale: The product of all scalar constants.
        tensors: The other factors.
    """

    scale: float
    tensors: tuple[Expr, ...]

    def has_scale(self, value: float) -> bool:
        """Whether the scalar is `value`, as exactly as the elements of the tensors can say it."""
        return is_near(self.scale, value, dtype_of(self.tensors[0]) if self.tensors else None)


def product_of(expr: Expr, depth: int = _DEPTH) -> Product:
    """An expression as a product; of anything else than Mul, and Div by a scalar, it is the only factor."""
    scalar = scalar_value(expr)
    if scalar is not None:
        return Product(scalar, ())
    name = operator_name(expr)
    if depth and name in ("Mul", "Div"):
        assert isinstance(expr, Call)
        left, right = (product_of(arg, depth - 1) for arg in expr.args)
        if name == "Mul":
            return Product(left.scale * right.scale, (*left.tensors, *right.tensors))
        if not right.tensors and right.scale:
            return Product(left.scale / right.scale, left.tensors)
    return Product(1.0, (expr,))


def scalar_value(expr: Expr) -> float | None:
    """The value of a constant of one float."""
    match expr:
        case Constant(data=data) if data.size == 1 and DType.of(data) in _DIGITS:
            return float(data.item())
        case _:
            return None


def plus_scalar(expr: Expr) -> tuple[Expr, float] | None:
    """`x` and `c` of `x + c` or `c + x`."""
    if operator_name(expr) != "Add":
        return None
    assert isinstance(expr, Call)
    left, right = expr.args
    for x, other in ((left, right), (right, left)):
        value = scalar_value(other)
        if value is not None:
            return x, value
    return None


def is_near(found: float, expected: float, dtype: DType | None) -> bool:
    """Whether a constant of a model is the number of the formula, up to its last digits."""
    digits = None if dtype is None else _DIGITS.get(dtype)
    return digits is not None and abs(found - expected) <= abs(expected) * 2.0 ** (1 - digits)
