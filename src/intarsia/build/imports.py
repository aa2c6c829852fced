"""What a block uses of the one that it is written in."""

from __future__ import annotations

from collections.abc import Callable

from intarsia.build.slot_value import FUNCTIONS, ChosenFunction, SlotValue
from intarsia.build.slots import SlotTable
from intarsia.ir import Expr


class Imports:
    """Values of the outer block as values of this block: their slots become further parameters.

    Args:
        table: The slots of this block.
        outer: Imports of the outer function.

    Attributes:
        captured: This block's slots by those of the outer one.
    """

    def __init__(self, table: SlotTable, outer: SlotTable) -> None:
        self.captured: dict[int, int] = {}
        self._table, self._outer = table, outer
        self._values: dict[Expr, SlotValue] = {}

    def taken(self, expr: Expr, value: SlotValue) -> SlotValue:
        """The value of an expression, given that in the outer block."""
        self._values[expr] = value
        return self._imported(value)

    def are_those_of(self, value_of: Callable[[Expr], SlotValue]) -> bool:
        """Whether all that was taken still has the same values in the outer block."""
        return all(value_of(expr) == value for expr, value in self._values.items())

    def _imported(self, value: SlotValue) -> SlotValue:
        match value:
            case tuple():
                return tuple(map(self._imported, value))
            case int():
                return self._slot(value)
            case ChosenFunction():
                true, false = self._imported(value.true), self._imported(value.false)
                assert isinstance(true, FUNCTIONS)
                assert isinstance(false, FUNCTIONS)
                return ChosenFunction(self._slot(value.cond), true, false)
            case _:
                return value

    def _slot(self, outer: int) -> int:
        if outer not in self.captured:
            self.captured[outer] = self._table.imported(self._outer, outer)
        return self.captured[outer]
