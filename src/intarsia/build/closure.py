"""What a kernel is made of: expressions in which all that is computed outside has become a parameter."""

from __future__ import annotations

from collections.abc import Callable

from intarsia.build.capture import Captures
from intarsia.build.slot_value import ChosenFunction, SlotValue, leaves
from intarsia.build.task import Task, run_task
from intarsia.ir import Constant, Expr, Function, GlobalVar, Tuple, TupleType, Type, Var, substitute
from intarsia.support.errors import UnsupportedModelError


class Closure:
    """Stand-ins for values of a block inside of one kernel.

    Args:
        captures: Outer variables that functions use.
        value: The value of an expression in the block.
        refusal: Makes the error of a problem and what helps.

    Attributes:
        params: The parameters of the kernel by the slots that they stand for.
    """

    def __init__(
        self,
        captures: Captures,
        value: Callable[[Expr], SlotValue],
        refusal: Callable[[str, str], UnsupportedModelError],
    ) -> None:
        self.params: dict[int, Var] = {}
        self._captures, self._value, self._refusal = captures, value, refusal
        self._closed: dict[Function, Function | None] = {}

    def stand_in(self, expr: Expr) -> Expr:
        """What stands for an expression of the block: parameters for slots, and functions closed likewise.

        Raises:
            UnsupportedModelError: A function calls itself.
        """
        value = self._value(expr)
        run_task(self._close(value))
        return self._made(value, expr.checked_type)

    def argument(self, expr: Expr) -> Expr:
        """What stands for an argument of an operator.

        Raises:
            UnsupportedModelError: It is a tuple of several values, or a function that calls itself.
        """
        stand_in = self.stand_in(expr)
        if isinstance(stand_in, Tuple) and stand_in.fields:
            raise self._refusal("an operator takes a tuple", "")
        return stand_in

    def _close(self, value: SlotValue) -> Task:
        for leaf in leaves(value):
            if isinstance(leaf, Function) and leaf not in self._closed:
                yield self._function(leaf)
            elif isinstance(leaf, Function) and self._closed[leaf] is None:
                raise self._refusal("a local function calls itself", "make it a global function")

    def _function(self, function: Function) -> Task:
        self._closed[function] = None  # until it is done
        replacements: dict[Expr, Expr] = {}
        for used in self._captures.of(function):
            value = self._value(used)
            yield self._close(value)
            replacements[used] = self._made(value, used.checked_type)
        closed = substitute(function, replacements)
        assert isinstance(closed, Function)
        self._closed[function] = closed

    def _made(self, value: SlotValue, type_: Type | None) -> Expr:
        match value:
            case int():
                return self.params.setdefault(value, Var(f"x{len(self.params)}", checked_type=type_))
            case tuple():
                types = type_.fields if isinstance(type_, TupleType) else (None,) * len(value)
                return Tuple(tuple(map(self._made, value, types)))
            case Function():
                closed = self._closed[value]
                assert closed is not None
                return closed
            case Constant() | GlobalVar():
                return value
            case ChosenFunction():
                raise self._refusal(
                    "what an operator or a marked function uses is a function that the run chooses",
                    "choose between calls instead of functions",
                )
