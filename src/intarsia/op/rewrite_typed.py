"""Rewriting where the rule sees types, and what it builds carries the facts of what it replaces."""

from __future__ import annotations

from collections.abc import Container

from intarsia.ir import Expr, GlobalVar, Op, children, post_order, with_children, with_fields
from intarsia.ir.traversal import Rule
from intarsia.op.infer import typed
from intarsia.target import UNCONSTRAINED


def rewrite_typed(expr: Expr, rule: Rule) -> Expr:
    """Apply `rule` bottom-up to every distinct expression, each once, as `ir.rewrite` does, and keep facts.

    * What the rule sees has its type inferred again if the type of an argument has changed.
    * What the rule builds gets a type, and where it has none, the span and device of what it replaces.
    * An expression with a virtual device is not replaced by one of the program's that has another: the
      value would move (seed virtual_device: facts survive every pass).

    Linear in nodes and edges, if the rule builds a bounded number of expressions. Returns the same object
    when the rule changed nothing.
    """
    done: dict[Expr, Expr] = {}
    known: set[Expr] = set()
    for node in post_order(expr):
        current = with_children(node, tuple(done[child] for child in children(node)))
        if current is not node:
            current = typed(current)
        known.add(current)
        done[node] = after = replacement(current, rule(current), known)
        known.add(after)
    return done[expr]


def replacement(old: Expr, new: Expr, known: Container[Expr]) -> Expr:
    """What stands in place of `old`: `new`, with the facts of `old` on all that was built for it.

    Args:
        old: The expression that is replaced.
        new: Its replacement.
        known: What belongs to the program already; the rest below `new` was built.
    """
    if new is old:
        return old
    if new in known:
        is_moved = old.virtual_device not in (UNCONSTRAINED, new.virtual_device)
        return old if is_moved else new
    built: dict[Expr, Expr] = {}
    for node in post_order(new, stop=known):
        current = with_children(node, tuple(built.get(child, child) for child in children(node)))
        built[node] = _with_facts(typed(current), old)
    return built[new]


def _with_facts(new: Expr, old: Expr) -> Expr:
    if isinstance(new, (Op, GlobalVar)):
        return new
    device = old.virtual_device if new.virtual_device == UNCONSTRAINED else new.virtual_device
    return with_fields(new, span=new.span or old.span, virtual_device=device)
