"""The rules of scopes: a variable is bound once and used inside its scope; closed functions are closed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from intarsia.ir.complaint import Complaint
from intarsia.ir.expr import Expr, Function, Let, Var
from intarsia.ir.scope import Scope, ScopedProgram, is_atom, place
from intarsia.ir.traversal import children, post_order

CLOSED: Final = ("Compiler", "Primitive")
"""Attributes of functions that are compiled on their own, so that they may capture nothing."""


def scope_complaints(owner: str, root: Function) -> Iterator[Complaint]:
    """Complaints about the scopes of one global function."""
    placed = place(root)
    binders: dict[Expr, Scope] = {}
    for expr in post_order(root):
        for var, scope in _bound(expr, placed):
            if var in binders:
                yield Complaint(owner, expr, "bound a second time:", var)
            binders[var] = scope
    yield from _use_complaints(owner, _ScopeTree.of(placed), binders)


def _use_complaints(owner: str, tree: _ScopeTree, binders: dict[Expr, Scope]) -> Iterator[Complaint]:
    reported: set[tuple[Expr, Expr]] = set()
    for user, scope, used in tree.uses():
        home = binders.get(used) if isinstance(used, Var) else tree.home[used]
        function = tree.closed[scope]
        at, text = user, ""
        if home is None:
            text = "free variable"
        elif isinstance(used, Var) and not tree.encloses(home, scope):
            text = "used outside its scope:"
        elif function is not None and not tree.encloses(tree.body_of(function), home):
            name = next(name for name in CLOSED if name in function.attrs)
            at, text = function, f"a function with {name} must not use what is outside of it:"
        if text and (at, used) not in reported:
            reported.add((at, used))
            yield Complaint(owner, at, text, used)


def _bound(expr: Expr, placed: ScopedProgram) -> Iterator[tuple[Var, Scope]]:
    """The variables that an expression binds, each with the scope it can be used in."""
    match expr:
        case Function():
            for param in expr.params:
                yield param, placed.inner[expr, len(expr.params)]
        case Let():
            yield expr.var, placed.inner[expr, 2]
        case _:
            return


@dataclass(frozen=True, slots=True)
class _ScopeTree:
    """The scopes of a function, numbered such that those inside a scope follow it without a gap.

    Attributes:
        placed: Scope of each expression.
        home: The scope of each compound expression.
        closed: For each scope, the innermost function around it that must be closed, or None.
        start: The number of each scope.
        size: Number of scopes in each scope, itself included.
    """

    placed: ScopedProgram
    home: dict[Expr, Scope]
    closed: dict[Scope, Function | None]
    start: dict[Scope, int]
    size: dict[Scope, int]

    @classmethod
    def of(cls, placed: ScopedProgram) -> _ScopeTree:
        home = {expr: scope for scope, members in placed.members.items() for expr in members}
        openers = {scope: expr for (expr, _), scope in placed.inner.items()}
        size = dict.fromkeys(placed.members, 1)  # parents come before the scopes inside them
        for scope in reversed(placed.members):
            if scope.parent is not None:
                size[scope.parent] += size[scope]
        start: dict[Scope, int] = {}
        free: dict[Scope, int] = {}
        closed: dict[Scope, Function | None] = {}
        for scope in placed.members:
            parent, opener = scope.parent, openers.get(scope)
            start[scope] = 0 if parent is None else free[parent]
            free[scope] = start[scope] + 1
            closed[scope] = None if parent is None else closed[parent]
            if parent is not None:
                free[parent] += size[scope]
            if isinstance(opener, Function) and any(name in opener.attrs for name in CLOSED):
                closed[scope] = opener
        return cls(placed, home, closed, start, size)

    def encloses(self, outer: Scope, inner: Scope) -> bool:
        """Whether a scope is around another one, or the same."""
        return self.start[outer] <= self.start[inner] < self.start[outer] + self.size[outer]

    def body_of(self, function: Function) -> Scope:
        """The scope of a function's body."""
        return self.placed.inner[function, len(function.params)]

    def uses(self) -> Iterator[tuple[Expr, Scope, Expr]]:
        """Every use of a variable or compound expression, as user, scope, used; binders are no uses."""
        for expr, scope in self.home.items():
            binders = len(expr.params) if isinstance(expr, Function) else isinstance(expr, Let)
            for position, child in enumerate(children(expr)):
                if position >= binders and (isinstance(child, Var) or not is_atom(child)):
                    yield expr, self.placed.inner.get((expr, position), scope), child
