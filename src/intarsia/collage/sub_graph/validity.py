"""Why a set of nodes cannot become a function."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.collage.graph.index_set import IndexSet
from intarsia.collage.graph.node_kind import node_label
from intarsia.collage.sub_graph.boundary import Boundary
from intarsia.ir import FuncType, TupleType, Type, Var


def block_complaints(graph: DataflowGraph, inside: IndexSet) -> Iterator[str]:
    """Nodes of two blocks, parts of a unit, variables without what binds them."""
    first: int | None = None
    for index in inside:
        block = graph[index].block
        if block is None or (block.opener is not None and block.opener in inside):
            continue
        if isinstance(graph[index].expr, Var):
            yield f"takes {named_nodes(graph, (index,))} without what binds it"
        if first is None:
            first = index
        elif graph[first].block is not block:
            yield f"lies in two blocks: {named_nodes(graph, (first,))} and {named_nodes(graph, (index,))}"
    for index in inside & graph.owners:
        missing = graph.unit(index) - inside
        if missing:
            owner = named_nodes(graph, (index,))
            yield f"takes {owner} without {named_nodes(graph, missing)}, which belongs to it"


def convexity_complaints(graph: DataflowGraph, boundary: Boundary) -> Iterator[str]:
    """Paths that leave and come back."""
    for index in boundary.output:
        back = graph.downstream_of(index) & boundary.entry
        if back:
            yield (
                f"is left and entered again: from {named_nodes(graph, (index,))}, which is outside, "
                f"to {named_nodes(graph, back)}"
            )


def type_complaints(graph: DataflowGraph, boundary: Boundary) -> Iterator[str]:
    """Values that a function cannot be given, or cannot return."""
    for index in boundary.input:
        what = _problem(graph[index].expr.checked_type) or (
            "a tuple" if isinstance(graph[index].expr.checked_type, TupleType) else ""
        )
        if what:
            yield f"uses {what} from outside: {named_nodes(graph, (index,))}"
    for index in boundary.exit:
        what = _problem(graph[index].expr.checked_type)
        if what:
            yield f"returns {what}: {named_nodes(graph, (index,))}"


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


def named_nodes(graph: DataflowGraph, indices: Iterable[int]) -> str:
    """Nodes as people know them: number and operator, the first four."""
    found = list(indices)
    names = [f"{index} {_name(graph, index)}" for index in found[:4]]
    return ", ".join([*names, "..."] if len(found) > 4 else names)


def _name(graph: DataflowGraph, index: int) -> str:
    expr = graph[index].expr
    return f"%{expr.name}" if isinstance(expr, Var) else node_label(expr) or type(expr).__name__
