"""Why a set of nodes cannot become a function."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.collage.graph.node_kind import node_label
from intarsia.collage.sub_graph.quotient import quotient_cycle
from intarsia.collage.sub_graph.sub_graph_config import ANY_SHAPE, SubGraphConfig
from intarsia.ir import FuncType, TupleType, Type, Var

if TYPE_CHECKING:
    from intarsia.collage.sub_graph.sub_graph import SubGraph


def invalid_reason(sub_graph: SubGraph, config: SubGraphConfig) -> str | None:
    """The first thing that is wrong, as `SubGraph.invalid_reason` says; None if nothing is.

    Costs as much as the sub-graph has edges once, and then what its border is long; the downstream sets of
    the graph are needed.
    """
    exits = len(sub_graph.exit)
    if config.max_exits and exits > config.max_exits:
        return (
            f"has {exits} results ({_named(sub_graph.graph, sub_graph.exit)}), allowed is {config.max_exits}"
        )
    if config.max_depth and sub_graph.depth > config.max_depth:
        return f"is {sub_graph.depth} nodes deep, allowed is {config.max_depth}"
    if not config.allow_taps and sub_graph.has_taps:
        return f"returns what it uses itself ({_named(sub_graph.graph, _taps(sub_graph))})"
    return sub_graph.structure_complaint


def structure_complaint(sub_graph: SubGraph) -> str | None:
    """The first thing that is wrong whatever shapes are allowed; None if nothing is."""
    return next(_complaints(sub_graph), None)


def _complaints(sub_graph: SubGraph) -> Iterator[str]:
    if not sub_graph.exit:
        yield "computes nothing that is used"
    yield from _of_blocks(sub_graph)
    yield from _of_nested(sub_graph)
    yield from _of_convexity(sub_graph)
    yield from _of_types(sub_graph)


def _of_blocks(sub_graph: SubGraph) -> Iterator[str]:
    """Nodes of two blocks, parts of a unit, variables without what binds them."""
    graph, inside = sub_graph.graph, sub_graph.inside
    first: int | None = None
    for index in inside:
        block = graph[index].block
        if block is None or (block.opener is not None and block.opener in inside):
            continue
        if isinstance(graph[index].expr, Var):
            yield f"takes {_named(graph, (index,))} without what binds it"
        if first is None:
            first = index
        elif graph[first].block is not block:
            yield f"lies in two blocks: {_named(graph, (first,))} and {_named(graph, (index,))}"
    for index in inside & graph.owners:
        missing = graph.unit(index) - inside
        if missing:
            yield f"takes {_named(graph, (index,))} without {_named(graph, missing)}, which belongs to it"


def _of_nested(sub_graph: SubGraph) -> Iterator[str]:
    """Nested sub-graphs that lie outside, overlap, are invalid, or need each other in a circle."""
    union = sub_graph.graph.set_of()
    for one in sub_graph.nested:
        inner = one.sub_graph
        if not inner.inside.is_subset(sub_graph.inside):
            yield f"has a nested function with nodes from outside: {inner.inside - sub_graph.inside}"
        if union.intersects(inner.inside):
            yield f"has nested functions that overlap: in {union & inner.inside}"
        union |= inner.inside
        reason = None if inner.inside == sub_graph.inside else inner.invalid_reason(ANY_SHAPE)
        if reason is not None:
            yield f"has a nested function {inner.inside} that {reason}"
    if any(len(one.sub_graph.exit) > 1 for one in sub_graph.nested) and len(sub_graph.nested) > 1:
        parts = [one.sub_graph.inside for one in sub_graph.nested]
        circle = quotient_cycle(sub_graph.graph, parts, within=sub_graph.inside)
        if circle:
            yield "has nested functions that need each other: " + ", ".join(str(parts[i]) for i in circle)


def _of_convexity(sub_graph: SubGraph) -> Iterator[str]:
    """Paths that leave and come back."""
    graph, entry = sub_graph.graph, sub_graph.entry
    for index in sub_graph.output:
        back = graph.downstream_of(index) & entry
        if back:
            yield (
                f"is left and entered again: from {_named(graph, (index,))}, which is outside, "
                f"to {_named(graph, back)}"
            )


def _of_types(sub_graph: SubGraph) -> Iterator[str]:
    """Values that a function cannot be given, or cannot return."""
    graph = sub_graph.graph
    for index in sub_graph.input:
        what = _problem(graph[index].expr.checked_type) or (
            "a tuple" if isinstance(graph[index].expr.checked_type, TupleType) else ""
        )
        if what:
            yield f"uses {what} from outside: {_named(graph, (index,))}"
    for index in sub_graph.exit:
        what = _problem(graph[index].expr.checked_type)
        if what:
            yield f"returns {what}: {_named(graph, (index,))}"


def _problem(type_: Type | None) -> str:
    match type_:
        case None:
            return "a value of unknown type"
        case FuncType():
            return "a function"
        case TupleType(fields=fields):
            return next(filter(None, map(_problem, fields)), "")
        case _:
            return ""


def _taps(sub_graph: SubGraph) -> Iterator[int]:
    flow = sub_graph.graph.flow_outputs
    return (i for i in sub_graph.exit if any(user in sub_graph.inside for user in flow[i]))


def _named(graph: DataflowGraph, indices: Iterable[int]) -> str:
    """Nodes as people know them: number and operator, the first four."""
    found = list(indices)
    names = [f"{index} {_name(graph, index)}" for index in found[:4]]
    return ", ".join([*names, "..."] if len(found) > 4 else names)


def _name(graph: DataflowGraph, index: int) -> str:
    expr = graph[index].expr
    return f"%{expr.name}" if isinstance(expr, Var) else node_label(expr) or type(expr).__name__
