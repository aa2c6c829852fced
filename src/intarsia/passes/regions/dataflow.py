"""What of a function can be cut into regions, and what depends on what there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from intarsia.ir import Call, Expr, Function, Op, children, post_order
from intarsia.ir.scope import Scope, ScopedProgram, is_atom, place
from intarsia.passes.functions.sealed import is_sealed


@dataclass(frozen=True, slots=True)
class Dataflow:
    """The open expressions of a function: those in no sealed function and in no operator's body.

    Branches of an If, bodies of a Let and function values are open; the body of a Loop, Scan or SequenceMap
    stays with its operator, whatever it uses from outside is what the operator's call needs.

    Attributes:
        nodes: The open compound expressions, each after what it needs; sealed functions are left out.
        scope: Scope of evaluation of each expression.
        needs: The open compound expressions that must be evaluated before, without repetition.
    """

    nodes: tuple[Expr, ...]
    scope: dict[Expr, Scope]
    needs: dict[Expr, tuple[Expr, ...]]

    @classmethod
    def of(cls, function: Function) -> Dataflow:
        """Linear in the program, times the uses of an operator's body."""
        placed = place(function)
        order = [expr for expr in post_order(function) if not is_atom(expr)]
        units = _units(order)
        closed = _closed_scopes(placed, units)
        scope = {
            expr: home for home, members in placed.members.items() if home not in closed for expr in members
        }
        nodes = tuple(expr for expr in order if expr in scope and expr not in units)
        needs = {expr: tuple(dict.fromkeys(_needs(expr, scope, units))) for expr in nodes}
        return cls(nodes, scope, needs)


def _units(order: list[Expr]) -> set[Expr]:
    """Sealed functions, and functions that are an operator's body."""
    bodies = {
        arg for expr in order if isinstance(expr, Call) and isinstance(expr.op, Op) for arg in expr.args
    }
    return {expr for expr in order if isinstance(expr, Function) and (is_sealed(expr) or expr in bodies)}


def _closed_scopes(placed: ScopedProgram, units: set[Expr]) -> set[Scope]:
    closed: set[Scope] = set()
    for (opener, _), scope in placed.inner.items():  # a scope comes before those inside of it
        if opener in units or scope.parent in closed:
            closed.add(scope)
    return closed


def _needs(expr: Expr, scope: dict[Expr, Scope], units: set[Expr]) -> Iterator[Expr]:
    """Open children; for a unit, what it captures."""
    for child in children(expr):
        if child in units:
            yield from _captured(child, scope, units)
        elif not is_atom(child):
            yield child


def _captured(unit: Expr, scope: dict[Expr, Scope], units: set[Expr]) -> Iterator[Expr]:
    seen: set[Expr] = set()
    stack = [*children(unit)]
    while stack:
        expr = stack.pop()
        if expr in seen or is_atom(expr):
            continue
        seen.add(expr)
        if expr in scope and expr not in units:  # a body that another one uses stands outside of it
            yield expr
        else:
            stack.extend(reversed(children(expr)))
