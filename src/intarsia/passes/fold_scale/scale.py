"""A multiplication by constants along one axis, and the place that could take one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, prod

import numpy as np

from intarsia.ir import Call, Constant, DType, Expr
from intarsia.passes.rules.tensor_facts import Array, dims_of, dtype_of, keeps_shape, operator_name
from intarsia.support.page_memory import allocate_pages

FLOATS = frozenset({DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32, DType.FLOAT64})
"""Element types whose constants are multiplied at compile time, in float64, and rounded once."""

_ROOM = 16
"""How many times the smallest normal number the largest scaled weight must be: what is lost by smaller ones
is below its own last digit, also in float16."""


@dataclass(frozen=True, slots=True, eq=False)
class Scale:
    """Factors for a tensor.

    Attributes:
        axis: The axis along which they differ; None for one factor for all elements.
        factors: float64, of shape (size of the axis,), or () for one.
    """

    axis: int | None
    factors: Array

    def times(self, other: Scale | None) -> Scale:
        """Both, one after the other; of two axes they must be the same."""
        if other is None:
            return self
        return Scale(other.axis if self.axis is None else self.axis, self.factors * other.factors)

    def along(self, axis: int | None) -> Scale:
        """The same factors, if they differ, along another axis."""
        return self if self.axis is None else Scale(axis, self.factors)

    def broadcast(self, rank: int) -> Array:
        """The factors in a shape that can be multiplied with a tensor of that rank."""
        if self.axis is None:
            return self.factors
        return self.factors.reshape(-1, *(1,) * (rank - 1 - self.axis))


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Which scales a place can take.

    Attributes:
        axis: The axis along which factors may differ; None for any.
        is_positive_only: Whether factors must not be negative.
        lowest: Size that factors other than 0 must have, so that nothing vanishes.
        highest: Size that no factor may exceed, so that nothing overflows.
    """

    axis: int | None
    is_positive_only: bool = False
    lowest: float = 0.0
    highest: float = inf

    def takes(self, scale: Scale) -> bool:
        """Whether the place can take a scale."""
        if None not in (scale.axis, self.axis) and scale.axis != self.axis:
            return False
        if self.is_positive_only and (scale.factors < 0).any():
            return False
        size = np.abs(scale.factors[scale.factors != 0])
        return bool(
            np.isfinite(scale.factors).all() and (size >= self.lowest).all() and (size <= self.highest).all()
        )

    def meet(self, other: Acceptance) -> Acceptance | None:
        """What both places take, if anything."""
        if None not in (self.axis, other.axis) and self.axis != other.axis:
            return None
        return Acceptance(
            other.axis if self.axis is None else self.axis,
            self.is_positive_only or other.is_positive_only,
            max(self.lowest, other.lowest),
            min(self.highest, other.highest),
        )

    def after(self, scale: Scale) -> Acceptance:
        """What the place still takes when it takes this scale."""
        size = np.abs(scale.factors[scale.factors != 0])
        if not size.size:
            return replace(self, axis=self.axis if scale.axis is None else scale.axis)
        return Acceptance(
            self.axis if scale.axis is None else scale.axis,
            self.is_positive_only,
            self.lowest / float(size.min()),
            self.highest / float(size.max()),
        )


def scale_of(expr: Expr) -> tuple[int, Scale] | None:
    """Which argument a Mul by a constant, or Div by one, multiplies, and by what; None for all else.

    The argument has the shape of the result, and the constant differs along one axis at most.
    """
    if not isinstance(expr, Call) or operator_name(expr) not in ("Mul", "Div"):
        return None
    if dtype_of(expr) not in FLOATS:
        return None
    match operator_name(expr), expr.args:
        case _, (x, Constant() as constant):
            position = 0
        case "Mul", (Constant() as constant, x):
            position = 1
        case _:
            return None
    scale = scale_along_axis(x, constant)
    if scale is None or operator_name(expr) == "Mul":
        return None if scale is None else (position, scale)
    with np.errstate(divide="ignore"):
        return position, Scale(scale.axis, 1 / scale.factors)


def scale_along_axis(expr: Expr, constant: Constant) -> Scale | None:
    """A constant that is combined elementwise with a tensor of known rank, if it differs along one axis."""
    dims, data = dims_of(expr), constant.data
    if dims is None or isinstance(expr, Constant) or not keeps_shape(expr, data.shape):
        return None
    long_axes = [axis for axis, size in enumerate(data.shape) if size != 1]
    if len(long_axes) > 1:
        return None
    values = data.astype(np.float64)
    if not long_axes:
        return Scale(None, values.reshape(()))
    return Scale(long_axes[0] + len(dims) - data.ndim, values.reshape(-1))


def acceptance_of(axis: int | None, *constants: Constant) -> Acceptance:
    """What can be multiplied into constants that stand along `axis` without overflow or loss of digits."""
    from ml_dtypes import finfo

    limits = finfo(constants[0].data.dtype)
    sizes = [_largest(item.data) for item in constants]
    first, largest = sizes[0], max(sizes)
    lowest = float(limits.smallest_normal) * _ROOM / first if first else 0.0
    return Acceptance(axis, False, lowest, float(limits.max) / largest if largest else inf)


def _largest(data: Array) -> float:
    return max(float(data.max()), -float(data.min())) if data.size else 0.0


def scaled_constant(constant: Constant, factors: Array) -> Constant:
    """A constant times factors, computed in float64 and rounded once; no copy of it is in float64.

    Args:
        constant: The constant.
        factors: Factors in float64.
    """
    data = constant.data
    shape = np.broadcast_shapes(data.shape, factors.shape)
    scaled = allocate_pages(prod(shape) * data.itemsize).view(data.dtype).reshape(shape)
    return Constant(np.multiply(data, factors, out=scaled, dtype=np.float64, casting="unsafe"))
