"""Combiners of reductions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from intarsia.ir import DType
from intarsia.ir.prim_func import Buffer, Literal, Load, Scalar
from intarsia.native.te.expression import Expression
from intarsia.native.te.iter_var import IterVar

Combine = Callable[[tuple[Expression, ...], tuple[Expression, ...]], Sequence[Expression]]
"""Function from accumulated values and new values to combined values."""


@dataclass(frozen=True, slots=True)
class Combiner:
    """An associative and commutative function of tuples, with its neutral element.

    Attributes:
        name: "sum", "max", "min", or a name for what it computes.
        identity: Neutral element, a literal for each value; their types are the values' types.
        result: Combined values over loads of `lhs` and `rhs`, one scalar for each value.
    """

    name: str
    identity: tuple[Literal, ...]
    result: tuple[Scalar, ...]

    @classmethod
    def of(cls, name: str, identity: Sequence[tuple[float, DType]], combine: Combine) -> Combiner:
        """Return the combiner of a Python function.

        Args:
            name: Name for what it computes.
            identity: A number and its type for each value.
            combine: Function from accumulated values and new values to combined values.
        """
        literals = tuple(Literal(value, dtype) for value, dtype in identity)
        sides = [tuple(Expression(load) for load in _side(side, literals)) for side in ("lhs", "rhs")]
        return cls(name, literals, tuple(each.scalar for each in combine(sides[0], sides[1])))

    @property
    def lhs(self) -> tuple[Load, ...]:
        """The loads in `result` that stand for the accumulated values."""
        return _side("lhs", self.identity)

    @property
    def rhs(self) -> tuple[Load, ...]:
        """The loads in `result` that stand for the new values."""
        return _side("rhs", self.identity)


def _side(name: str, identity: tuple[Literal, ...]) -> tuple[Load, ...]:
    return tuple(Load(Buffer(f"{name}.{i}", (), each.dtype), ()) for i, each in enumerate(identity))


@dataclass(frozen=True, slots=True, eq=False)
class Reduction:
    """Values combined over reduction axes; what the function of `te.compute` may return.

    Attributes:
        combiner: Combiner of the values.
        sources: Expressions that are combined, one for each value of the combiner.
        axes: Reduction axes, in loop order.
    """

    combiner: Combiner
    sources: tuple[Expression, ...]
    axes: tuple[IterVar, ...]
