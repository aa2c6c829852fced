"""What lies between an expression and an earlier one that it post-dominates."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from intarsia.ir.expr import Expr
from intarsia.ir.pattern.users import Users
from intarsia.ir.scope import is_atom
from intarsia.ir.traversal import children


def between(
    child: tuple[Expr, ...],
    users: Users,
    is_parent: Callable[[Expr], bool],
    path_at: Callable[[Expr], tuple[Expr, ...]],
    at_most: int,
) -> Iterator[tuple[Expr, tuple[Expr, ...]]]:
    """The expressions that lead only to `child`, with what lies between, each after what it uses.

    Goes from the child to what it uses, and takes an expression when all its users have been taken: so
    all its uses lead to the child. It does not look beyond a parent. Costs the number of expressions taken.

    Args:
        child: The expressions that stand for the later end.
        users: Users in the program.
        is_parent: Whether an expression may be the earlier end.
        path_at: The expressions that the pattern between covers at one; () where it does not fit.
        at_most: Largest number of expressions that are taken.
    """
    inside: set[Expr] = set(child)
    path: list[Expr] = []
    parents: list[Expr] = []
    waiting = _used_by(child, inside)
    while waiting and len(path) < at_most:
        expr = waiting.pop(0)
        if expr in inside or not users.all_in(expr, inside):
            continue  # it comes again with the last of its users
        if is_parent(expr):
            parents.append(expr)
            continue
        taken = [item for item in path_at(expr) if item not in inside]
        inside.update(taken)
        if all(users.all_in(item, inside) for item in taken):
            path += reversed(taken)
            waiting += _used_by(tuple(taken), inside)
        else:
            inside.difference_update(taken)
    path.reverse()  # now each after what it uses
    for parent in dict.fromkeys(parents):
        yield parent, _depending_on(parent, path)


def _depending_on(parent: Expr, path: list[Expr]) -> tuple[Expr, ...]:
    depending = {parent}
    for expr in path:
        if any(item in depending for item in children(expr)):
            depending.add(expr)
    return tuple(expr for expr in path if expr in depending)


def _used_by(exprs: tuple[Expr, ...], inside: set[Expr]) -> list[Expr]:
    used = dict.fromkeys(child for expr in exprs for child in children(expr))
    return [item for item in used if not is_atom(item) and item not in inside]
