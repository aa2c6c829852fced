"""Rewriting where the rule sees types, and what it builds carries the facts of what it replaces."""

from __future__ import annotations

from collections.abc import Container, Mapping

from intarsia.ir import Call, Expr, GlobalVar, Op, children, post_order, with_children, with_fields
from intarsia.ir.rule_errors import NamedFailure
from intarsia.ir.traversal import Rule
from intarsia.op.infer import typed
from intarsia.op.known_value import known_value
from intarsia.op.purity import is_random
from intarsia.support.errors import InvalidModelError
from intarsia.target import UNCONSTRAINED


def rewrite_typed(expr: Expr, rule: Rule) -> Expr:
    """Apply `rule` bottom-up to every distinct expression, each once, as `ir.rewrite` does, and keep facts.

    * What the rule sees has its type inferred again if the type of an argument has changed. Where nothing
      can be inferred it keeps the type that it had: a rewrite changes no value.
    * An expression keeps an argument as it was where inference refuses the new, more exact one. The
      evaluators take more: a Range of tensors with one element, for example.
    * What the rule builds gets a type, and where it has none, the span and device of what it replaces.
    * An expression with a virtual device is not replaced by one of the program's that has another: the
      value would move (seed virtual_device: facts survive every pass).

    Linear in nodes and edges, if the rule builds a bounded number of expressions. Returns the same object
    when the rule changed nothing.

    Raises:
        UnsupportedModelError: The rule raised a foreign exception; the error names the operator and its node.
    """
    done: dict[Expr, Expr] = {}
    originals: set[Expr] = set()
    for node in post_order(expr):
        with NamedFailure(node, "rewritten"):
            current = over_rewritten(node, done)
            originals.add(current)
            done[node] = after = replacement(current, rule(current), originals)
        originals.add(after)
    return done[expr]


def over_rewritten(node: Expr, done: Mapping[Expr, Expr]) -> Expr:
    """The expression over what its children have become, typed as `rewrite_typed` says.

    Raises:
        InvalidModelError: It cannot be applied to them.
    """
    new = tuple(done[child] for child in children(node))
    current = with_children(node, new)
    if current is node:
        return node
    try:
        return _typed_as(current, node)
    except InvalidModelError:
        old = tuple(child if _says_more(done[child], child) else done[child] for child in children(node))
        if any(a is not b and _draws(b) for a, b in zip(new, old, strict=True)):
            raise  # kept beside what it has become, it would draw twice
        return _typed_as(with_children(node, old), node)


def _typed_as(new: Expr, old: Expr) -> Expr:
    """An expression with its inferred type, else with that of another of the same value."""
    new = typed(new)
    return with_fields(new, checked_type=old.checked_type) if new.checked_type is None else new


def _says_more(new: Expr, old: Expr) -> bool:
    """Whether inference may see more of an argument than it did: another type, or a value."""
    has_value = known_value(new) is not None and known_value(old) is None
    return has_value or new.checked_type != old.checked_type


def _draws(expr: Expr) -> bool:
    return any(isinstance(node, Call) and is_random(node) for node in post_order(expr))


def replacement(old: Expr, new: Expr, originals: Container[Expr]) -> Expr:
    """What stands in place of `old`: `new`, with the facts of `old` on all that was built for it.

    Args:
        old: The expression that is replaced.
        new: Its replacement.
        originals: Expressions that belong to the program already; the rest below `new` was built.
    """
    if new is old:
        return old
    if new in originals:
        is_moved = old.virtual_device not in (UNCONSTRAINED, new.virtual_device)
        return old if is_moved else new
    built: dict[Expr, Expr] = {}
    for node in post_order(new, stop=originals):
        current = with_children(node, tuple(built.get(child, child) for child in children(node)))
        current = _typed_as(current, old) if node is new else typed(current)
        built[node] = _with_facts(current, old)
    return built[new]


def _with_facts(new: Expr, old: Expr) -> Expr:
    if isinstance(new, (Op, GlobalVar)):
        return new
    device = old.virtual_device if new.virtual_device == UNCONSTRAINED else new.virtual_device
    return with_fields(new, span=new.span or old.span, virtual_device=device)
