"""Rewriting by a rule that is called with the original expression beside the rewritten one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TypeAlias

from intarsia.ir import Expr, Function, children, post_order
from intarsia.op.rewrite_typed import over_rewritten, replacement

OriginalRule: TypeAlias = Callable[[Expr, Expr], Expr]
"""Given an expression of the program, and the same over rewritten children, returns what replaces it."""


def rewrite_original(
    function: Function, rule: OriginalRule, on_done: Callable[[Expr, Expr], None] | None = None
) -> Function:
    """As `op.rewrite_typed`, for rules that look up what was found out about the program before.

    Linear in nodes and edges, if the rule builds a bounded number of expressions.

    Args:
        function: Function to rewrite, bottom-up, each distinct expression once.
        rule: The rule.
        on_done: Called with each expression of the program and its replacement.
    """
    done: dict[Expr, Expr] = {}
    originals: set[Expr] = set()
    for node in post_order(function):
        current = over_rewritten(node, done)
        originals.add(current)
        done[node] = after = replacement(current, rule(node, current), originals)
        originals.add(after)
        if on_done is not None:
            on_done(node, after)
    result = done[function]
    assert isinstance(result, Function)
    return result


def count_uses(function: Function) -> Counter[Expr]:
    """How many places use each expression below a function."""
    return Counter(child for node in post_order(function) for child in children(node))
