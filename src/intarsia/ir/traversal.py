"""Walking and rewriting expressions without recursion: a chain of 100,000 calls is fine.

Source: DESIGN section 2. There is no visitor class hierarchy: one `post_order`, one `rewrite`, and `match`.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from operator import is_
from typing import TypeAlias, assert_never

from intarsia.ir.expr import (
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    Op,
    Tuple,
    TupleGetItem,
    Var,
    with_fields,
)
from intarsia.support.post_order import post_order_of

Rule: TypeAlias = Callable[[Expr], Expr]
"""Given an expression with rewritten children, returns its replacement or the same object."""


def children(expr: Expr) -> tuple[Expr, ...]:
    """The direct sub-expressions, in evaluation order; binders (parameters, let variables) come first."""
    if isinstance(expr, Call):  # most expressions with children; a match tries four classes before it
        return (expr.op, *expr.args)
    match expr:
        case Var() | GlobalVar() | Constant() | Op():
            return ()
        case Tuple():
            return expr.fields
        case TupleGetItem():
            return (expr.tuple_value,)
        case Function():
            return (*expr.params, expr.body)
        case Let():
            return (expr.var, expr.value, expr.body)
        case If():
            return (expr.cond, expr.true_branch, expr.false_branch)
        case _:
            assert_never(expr)


def with_children(expr: Expr, new: tuple[Expr, ...]) -> Expr:
    """The same expression over other sub-expressions; the same object if they are the same.

    All other fields are carried over, but for a type that may have become stale: if some child changed its
    type, or is another constant of integers (a shape, axes), the type is derived again (or left unknown for
    calls and ifs, to be inferred).
    """
    old = children(expr)
    if len(old) == len(new) and all(map(is_, old, new)):  # in C: most expressions stay as they are
        return expr
    stale = len(old) != len(new) or any(map(_may_change_type, old, new))
    facts: dict[str, object] = {"checked_type": None} if stale else {}
    match expr:
        case Var() | GlobalVar() | Constant() | Op():
            return expr
        case Call():
            return with_fields(expr, op=new[0], args=new[1:], **facts)
        case Tuple():
            return with_fields(expr, fields=new, **facts)
        case TupleGetItem():
            return with_fields(expr, tuple_value=new[0], **facts)
        case Function():
            return with_fields(expr, params=tuple(map(_binder, new[:-1])), body=new[-1], **facts)
        case Let():
            return with_fields(expr, var=_binder(new[0]), value=new[1], body=new[2], **facts)
        case If():
            return with_fields(expr, cond=new[0], true_branch=new[1], false_branch=new[2], **facts)
        case _:
            assert_never(expr)


def _may_change_type(old: Expr, new: Expr) -> bool:
    """Whether replacing a child can change its parent's type: by its own type, or as a shape."""
    if old is new:
        return False
    is_shape = any(isinstance(item, Constant) and item.data.dtype.kind in "iu" for item in (old, new))
    return is_shape or old.checked_type != new.checked_type


def _binder(expr: Expr) -> Var:
    if not isinstance(expr, Var):
        raise TypeError(
            f"a parameter or let variable may only be rewritten to a Var, not to {type(expr).__name__}"
        )
    return expr


def post_order(*roots: Expr, stop: Container[Expr] = ()) -> Iterator[Expr]:
    """Every distinct expression below the roots (included), each after its children, each once.

    Function bodies are entered, global functions are not. Linear in nodes and edges.

    Args:
        roots: Expressions to start from.
        stop: Expressions that are left out, and with them what is only below them (a set or dict).
    """
    return post_order_of(roots, children, stop)


def rewrite(expr: Expr, rule: Rule) -> Expr:
    """Apply `rule` bottom-up to every distinct expression, each once; sharing is kept.

    Returns the same object when the rule changed nothing: `after is before` is the change flag.
    """
    done: dict[Expr, Expr] = {}
    for node in post_order(expr):
        done[node] = rule(with_children(node, tuple(done[child] for child in children(node))))
    return done[expr]


def substitute(expr: Expr, replacements: dict[Expr, Expr]) -> Expr:
    """Replace sub-expressions, given by identity, everywhere at once; replacements are not searched again."""
    done: dict[Expr, Expr] = dict(replacements)
    for node in post_order(expr, stop=replacements):
        done[node] = with_children(node, tuple(done[child] for child in children(node)))
    return done[expr]


def free_vars(expr: Expr) -> tuple[Var, ...]:
    """Variables used but not bound inside, in order of first use."""
    bound: set[Expr] = set()
    used: list[Var] = []
    for node in post_order(expr):
        match node:
            case Var():
                used.append(node)
            case Function():
                bound.update(node.params)
            case Let():
                bound.add(node.var)
            case _:
                pass
    return tuple(var for var in used if var not in bound)
