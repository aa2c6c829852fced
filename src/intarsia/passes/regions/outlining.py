"""Parts of a function made into function literals that are called in their place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from intarsia.ir import (
    Attrs,
    Expr,
    Function,
    Let,
    Tuple,
    Var,
    children,
    post_order,
    substitute,
    with_children,
)
from intarsia.passes.regions.dataflow import Dataflow
from intarsia.passes.regions.outline import Outline, outline_params
from intarsia.support.post_order import post_order_of


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """Expressions of one scope that are to become a function.

    Nothing outside lies on a way from one member to another, over all regions together: contracted to
    one expression each, they leave a graph without cycles.

    Attributes:
        members: The expressions, each after what it needs.
        outputs: Members that something outside uses.
        attrs: Attributes of the function.
    """

    members: tuple[Expr, ...]
    outputs: tuple[Expr, ...]
    attrs: Attrs


def outlined(function: Function, regions: Sequence[Region], dataflow: Dataflow) -> Function:
    """The function with every region replaced by a call of a literal that computes it.

    What flows in becomes parameters, in order of first use, but for constants, which are used inside; what
    flows out is the result, or a tuple of them. Spans and devices of values stay with them. Linear.
    """
    made = [_outline(region, dataflow) for region in regions]
    outlines = {output: outline for outline in made for output in outline.outputs}
    done: dict[Expr, Expr] = {}

    def below(expr: Expr) -> tuple[Expr, ...]:
        outline = outlines.get(expr)
        return children(expr) if outline is None else outline.arguments

    for expr in post_order_of((function,), below, stop=done):
        ready = tuple(done[child] for child in below(expr))
        outline = outlines.get(expr)
        if outline is None:
            done[expr] = with_children(expr, ready)
        else:  # all outputs of the region at once
            done.update(outline.called(ready))
    after = done[function]
    assert isinstance(after, Function)
    return after


def _outline(region: Region, dataflow: Dataflow) -> Outline:
    members = set(region.members)
    needed = {item for member in region.members for item in dataflow.needs[member]} - members
    params = outline_params(_arguments(region.outputs, needed))
    last = region.outputs[-1]
    inside: Expr = Tuple(region.outputs) if len(region.outputs) > 1 else last
    body = substitute(inside, dict(params))
    results = body.fields if isinstance(body, Tuple) and len(region.outputs) > 1 else (body,)
    return Outline.of(params, results, region.outputs, region.attrs)


def _arguments(outputs: tuple[Expr, ...], needed: set[Expr]) -> tuple[Expr, ...]:
    """What is needed, and the variables that are bound outside, in order of first use."""
    used: dict[Expr, None] = {}
    bound: set[Expr] = set()
    for expr in post_order(*outputs, stop=needed):
        if isinstance(expr, Function):
            bound.update(expr.params)
        elif isinstance(expr, Let):
            bound.add(expr.var)
        used.update((child, None) for child in children(expr) if child in needed or isinstance(child, Var))
    return tuple(expr for expr in used if expr not in bound)
