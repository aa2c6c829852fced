"""Parts of an expression replaced by calls of functions that compute them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from intarsia.ir import Call, Expr, children, with_children, with_fields
from intarsia.op.known_value import known_value, record_known_value
from intarsia.passes.regions.outline import Outline


def contracted(
    roots: Sequence[Expr],
    outlines: Sequence[Outline],
    replacements: Mapping[Expr, Expr],
    read_as: Mapping[Expr, Expr],
) -> tuple[Expr, ...]:
    """The roots with each outlined part replaced by a call.

    Every expression keeps its type, span and virtual device. The same objects where nothing changes. Linear,
    without recursion.

    Args:
        roots: Expressions.
        outlines: The parts; contracted to a node each, they leave no cycle.
        replacements: Replacements of some expressions below the roots; these are not entered.
        read_as: Other expressions to go on with in place of some.
    """
    by_output = {output: outline for outline in outlines for output in outline.outputs}
    done = dict(replacements)
    for root in roots:
        stack = [(root, False)]
        while stack:
            expr, is_ready = stack.pop()
            if expr in done:
                continue
            region = by_output.get(expr)
            below = _below(expr, region, read_as)
            if not is_ready:
                stack.append((expr, True))
                stack.extend((child, False) for child in reversed(below) if child not in done)
                continue
            ready = tuple(done[child] for child in below)
            if region is not None:
                done.update(region.called(ready))
            else:
                done[expr] = ready[0] if expr in read_as else _over(expr, ready)
    return tuple(done[root] for root in roots)


def _below(expr: Expr, outline: Outline | None, read_as: Mapping[Expr, Expr]) -> tuple[Expr, ...]:
    if outline is not None:
        return outline.arguments
    return (read_as[expr],) if expr in read_as else children(expr)


def _over(expr: Expr, new: tuple[Expr, ...]) -> Expr:
    """The expression over other children of the same values: its type stays, and what is known of it."""
    after = with_children(expr, new)
    if after is expr:
        return expr
    after = with_fields(after, checked_type=expr.checked_type)
    if isinstance(after, Call) and known_value(expr) is not None:
        record_known_value(after)
    return after
