"""What function literals use that is evaluated or bound around them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from intarsia.ir import Expr, Function, Var, children
from intarsia.ir.scope import Scope, ScopedProgram, binders, is_atom


@dataclass(frozen=True, slots=True)
class Captures:
    """The function literals of a placed program, and what each uses from outside.

    Attributes:
        around: The innermost function that a scope is in, None for that of the root.
        outer: The innermost function around each function.
        home: The scope where a variable is bound, or a compound expression evaluated.
        used: For each function, the variables and compound expressions from outside that it or a function
            inside of it uses, in order of use.
    """

    around: Mapping[Scope, Function | None]
    outer: Mapping[Function, Function | None]
    home: Mapping[Expr, Scope]
    used: Mapping[Function, tuple[Expr, ...]]

    @classmethod
    def of(cls, placed: ScopedProgram) -> Captures:
        """The captures of all functions. Linear, times the depth of functions inside of functions."""
        openers = {scope: expr for (expr, _), scope in placed.inner.items()}
        around: dict[Scope, Function | None] = {}
        outer: dict[Function, Function | None] = {}
        for scope in placed.members:  # enclosing scopes come first
            around[scope] = None if scope.parent is None else around[scope.parent]
            if isinstance(opener := openers.get(scope), Function):
                outer[opener] = around[scope]
                around[scope] = opener
        home = {expr: scope for scope, members in placed.members.items() for expr in members}
        for (expr, _), scope in placed.inner.items():
            home.update(dict.fromkeys(binders(expr), scope))
        captures = cls(around, outer, home, {})
        used: dict[Function, dict[Expr, None]] = {function: {} for function in outer}
        for scope, expr in _uses(placed):
            for function in captures.functions_between(scope, expr):
                used[function][expr] = None
        return cls(around, outer, home, {function: tuple(found) for function, found in used.items()})

    def functions_around(self, scope: Scope) -> Iterator[Function]:
        """The functions that a scope is in, the innermost first."""
        function = self.around[scope]
        while function is not None:
            yield function
            function = self.outer[function]

    def functions_between(self, scope: Scope, used: Expr) -> Iterator[Function]:
        """The functions that a scope is in, up to the one where what it uses is defined."""
        end = self.around[self.home[used]] if used in self.home else None
        for function in self.functions_around(scope):
            if function is end:
                return
            yield function

    def is_inside(self, expr: Expr, function: Function) -> bool:
        """Whether something is evaluated or bound in a function."""
        return expr in self.home and function in self.functions_around(self.home[expr])


def _uses(placed: ScopedProgram) -> Iterator[tuple[Scope, Expr]]:
    """Every use of a variable or compound expression, with the scope of the use; binders are no uses."""
    for scope, members in placed.members.items():
        for expr in members:
            bound = len(binders(expr))
            for position, child in enumerate(children(expr)):
                if position >= bound and (isinstance(child, Var) or not is_atom(child)):
                    yield placed.inner.get((expr, position), scope), child
