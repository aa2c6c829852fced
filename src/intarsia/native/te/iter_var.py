"""Axes of a tensor expression."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import IntEnum

from intarsia.ir.prim_func import LoopVar
from intarsia.native.te.expression import Expression, Operand


class IterKind(IntEnum):
    """The kind of an axis; the numbers are those of the v0.6 log."""

    SPATIAL = 0
    REDUCTION = 1
    MIXED = 2
    SPECIAL = 3


@dataclass(frozen=True, slots=True)
class IterVar:
    """An axis that counts from 0 to its extent minus 1.

    Attributes:
        name: Name of its loop variable, unique in its operation.
        extent: Number of values, at least 0.
        kind: Spatial or reduction.
        key_name: Name in keys of computations, if it is another one; "" if it is `name`.
    """

    name: str
    extent: int
    kind: IterKind = IterKind.SPATIAL
    key_name: str = field(default="", compare=False)

    def renamed(self, name: str) -> IterVar:
        """Return the axis with another name, in keys too."""
        return replace(self, name=name, key_name="")

    @property
    def var(self) -> LoopVar:
        """Its variable in scalars."""
        return LoopVar(self.name)

    @property
    def expression(self) -> Expression:
        """Its value, an int64."""
        return Expression(self.var)

    def __add__(self, other: Operand) -> Expression:
        return self.expression + other

    def __radd__(self, other: Operand) -> Expression:
        return other + self.expression

    def __sub__(self, other: Operand) -> Expression:
        return self.expression - other

    def __rsub__(self, other: Operand) -> Expression:
        return other - self.expression

    def __mul__(self, other: Operand) -> Expression:
        return self.expression * other

    def __rmul__(self, other: Operand) -> Expression:
        return other * self.expression

    def __floordiv__(self, other: Operand) -> Expression:
        return self.expression // other

    def __mod__(self, other: Operand) -> Expression:
        return self.expression % other
