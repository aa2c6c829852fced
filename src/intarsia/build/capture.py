"""What a function inside of an operator (body of Loop, Scan, SequenceMap) uses from outside."""

from __future__ import annotations

from intarsia.ir import Expr, Function, Let, Var, children
from intarsia.ir.scope import Scope, ScopedProgram, is_atom


class Captures:
    """Finds captured expressions in a placed program."""

    def __init__(self, placed: ScopedProgram) -> None:
        self._placed = placed
        self._scope_of = {expr: scope for scope, members in placed.members.items() for expr in members}

    def of(self, function: Function) -> tuple[Expr, ...]:
        """Variables and compound expressions that are evaluated outside, in order of first use."""
        body_scope = self._placed.inner[function, len(function.params)]
        bound: set[Expr] = set(function.params)
        used: list[Expr] = []
        seen: set[Expr] = set()
        stack: list[Expr] = [function.body]
        while stack:
            expr = stack.pop()
            if expr in seen:
                continue
            seen.add(expr)
            if isinstance(expr, Var) or not (is_atom(expr) or _is_inside(self._scope_of[expr], body_scope)):
                used.append(expr)
                continue
            if isinstance(expr, Function):
                bound.update(expr.params)
            elif isinstance(expr, Let):
                bound.add(expr.var)
            stack.extend(reversed(children(expr)))
        return tuple(expr for expr in used if expr not in bound)


def _is_inside(scope: Scope, outer: Scope) -> bool:
    current: Scope | None = scope
    while current is not None and current.depth > outer.depth:
        current = current.parent
    return current is outer
