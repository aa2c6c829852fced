"""Parts of an expression replaced by calls of functions that compute them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from intarsia.ir import Call, Expr, children, with_children, with_fields
from intarsia.op.known_value import known_value, record_known_value
from intarsia.passes.regions.outline import Outline
from intarsia.support.post_order import post_order_of


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

    def below(expr: Expr) -> tuple[Expr, ...]:
        return _below(expr, by_output.get(expr), read_as)

    for expr in post_order_of(roots, below, stop=done):
        ready = tuple(done[child] for child in below(expr))
        outline = by_output.get(expr)
        if outline is not None:  # all outputs of the part at once
            done.update(outline.called(ready))
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
