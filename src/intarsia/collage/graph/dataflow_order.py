"""The expressions of a function in post-depth-first order, as far as Collage looks into it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from intarsia.ir import Expr, Function, children
from intarsia.ir.scope import Scope, ScopedProgram, place
from intarsia.passes.functions.captured import Captures
from intarsia.passes.functions.sealed import is_sealed


@dataclass(slots=True)
class DataflowOrder:
    """The expressions below a function's body, each after what it uses.

    Sealed function literals count as one expression, which uses what the function captures.

    Attributes:
        exprs: The expressions.
        placed: The scopes of the function.
    """

    exprs: tuple[Expr, ...]
    placed: ScopedProgram
    _captures: Captures = field(repr=False)

    @classmethod
    def of(cls, function: Function) -> DataflowOrder:
        """The order of a function. Linear, times the depth of functions inside of functions."""
        placed = place(function)
        order = cls((), placed, Captures.of(placed))
        order.exprs = tuple(order._walk(function.body))
        return order

    def below(self, expr: Expr) -> tuple[Expr, ...]:
        """What an expression uses directly."""
        if isinstance(expr, Function) and is_sealed(expr):
            return self._captures.used[expr]
        return children(expr)

    def scope(self, expr: Expr) -> Scope | None:
        """Where an expression is evaluated or bound; None for what can stand anywhere."""
        return None if isinstance(expr, Function) else self._captures.home.get(expr)

    def _walk(self, root: Expr) -> Iterator[Expr]:
        seen: set[Expr] = set()
        stack: list[tuple[Expr, bool]] = [(root, False)]
        while stack:
            expr, is_ready = stack.pop()
            if is_ready:
                yield expr
            elif expr not in seen:
                seen.add(expr)
                stack.append((expr, True))
                stack.extend((item, False) for item in reversed(self.below(expr)) if item not in seen)
