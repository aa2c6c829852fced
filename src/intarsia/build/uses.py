"""How often expressions are used, and how they are named in messages."""

from __future__ import annotations

from collections import Counter

from intarsia.ir import Expr, Function, GlobalVar, Let, Op, Var, children, post_order


def use_counts(function: Function) -> Counter[Expr]:
    """How often each expression is used; a function bound by a let counts the uses of its name."""
    uses = Counter(child for expr in post_order(function) for child in children(expr))
    for expr in post_order(function):
        if isinstance(expr, Let) and isinstance(expr.value, Function):
            uses[expr.value] += uses[expr.var] - 2  # the binder itself, and the let's own use of the value
    return uses


def shown(expr: Expr) -> str:
    """An expression in a message."""
    match expr:
        case Var() | Op():
            return f'"{expr.name}"'
        case GlobalVar():
            return f"@{expr.name}"
        case _:
            return f'"{expr.span.node}"' if expr.span else f"a {type(expr).__name__}"
