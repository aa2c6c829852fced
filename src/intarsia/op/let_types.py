"""Variables of lets get the types of their values while a function is rewritten."""

from __future__ import annotations

from collections.abc import Callable

from intarsia.ir import Expr, Function, Let, Var, children, post_order, rewrite, with_children, with_fields
from intarsia.ir.rule_errors import NamedFailure


def rewrite_with_lets(function: Function, rule: Callable[[Expr], Expr]) -> Expr:
    """As `rewrite`, and a let's variable without a type has that of the value, as soon as it is known.

    Linear in the function: a let's value is rewritten before its body, where the variable is used.

    Args:
        function: The function.
        rule: Gets each expression with what became of its children.
    """
    bound = _open_variables(function)

    def named(node: Expr) -> Expr:
        with NamedFailure(node, "typed"):
            return rule(node)

    if not bound:
        return rewrite(function, named)
    done: dict[Expr, Expr] = {}
    for node in post_order(function):
        if node not in done:
            done[node] = named(with_children(node, tuple(done[child] for child in children(node))))
        type_ = done[node].checked_type
        for var in bound.get(node, ()) if type_ is not None else ():
            done[var] = with_fields(var, checked_type=type_)
    return done[function]


def _open_variables(function: Function) -> dict[Expr, list[Var]]:
    """The variables of lets whose types are not known, by the value that they stand for."""
    variables: dict[Expr, list[Var]] = {}
    for node in post_order(function):
        if isinstance(node, Let) and node.var.checked_type is None:
            variables.setdefault(node.value, []).append(node.var)
    return variables
