"""Scopes as far as they say how often something is evaluated: the body of a let belongs to what is around."""

from __future__ import annotations

from collections.abc import Iterable

from intarsia.ir import Call, Expr, Function, Let, Op
from intarsia.ir.scope import CLOSED, Scope, ScopedProgram


def evaluation_regions(placed: ScopedProgram, transparent: Iterable[Expr] = ()) -> dict[Scope, Scope]:
    """For each scope the outermost one that is evaluated exactly when it is: its region.

    Args:
        placed: A placed program.
        transparent: Functions whose bodies count as part of what is around, besides the bodies of lets.
    """
    joined = set(transparent)
    is_joined = {
        scope: isinstance(opener, Let) or opener in joined for (opener, _), scope in placed.inner.items()
    }
    region_of: dict[Scope, Scope] = {}
    for scope in placed.members:  # enclosing scopes come first
        inherits = scope.parent is not None and is_joined[scope]
        region_of[scope] = region_of[scope.parent] if inherits and scope.parent is not None else scope
    return region_of


def operator_bodies(order: Iterable[Expr]) -> frozenset[Expr]:
    """The functions that Loop, Scan and SequenceMap evaluate.

    What does not depend on their variables is evaluated around them (`ir.scope`).

    Args:
        order: All expressions of the program.
    """
    calls = [expr for expr in order if isinstance(expr, Call)]
    called = {call.op for call in calls}
    return frozenset(
        arg
        for call in calls
        if isinstance(call.op, Op)
        for arg in call.args
        if isinstance(arg, Function) and arg not in called and not any(name in arg.attrs for name in CLOSED)
    )
