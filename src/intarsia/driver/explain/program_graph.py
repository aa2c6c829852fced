"""The graph of the program that was tuned, with the toolchain of each node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.collage.graph.node_kind import node_label
from intarsia.collage.placement.placement import stable_nodes
from intarsia.driver.explain.function import ChosenPartition
from intarsia.ir import Expr, Function, IRModule, Var, post_order
from intarsia.report.run_records import GraphNode
from intarsia.support.number_ranges import ranges_text
from intarsia.tune.target_options import marked_functions


def program_graph(module: IRModule, toolchains: Mapping[int, str]) -> tuple[GraphNode, ...]:
    """Return the parameters and operators of @main, with the nodes whose values each reads.

    Tuples and fields have no node: what they hold flows through them.

    Args:
        module: Program that was tuned.
        toolchains: Toolchain of the winner by stable number.
    """
    main = module["main"]
    if not isinstance(main, Function):
        return ()
    graph = DataflowGraph.of(main)
    numbers = {index: number for number, index in enumerate(stable_nodes(graph))}
    sources: dict[int, frozenset[int]] = {}
    records = []
    for node in graph:
        read = frozenset(number for index in node.inputs for number in sources.get(index, ()))
        shown = _shown(node.expr)
        if node.index not in numbers or shown is None:
            sources[node.index] = read
            continue
        number = numbers[node.index]
        sources[node.index] = frozenset((number,))
        operator, name = shown
        toolchain = toolchains.get(number, "") if operator else ""
        records.append(GraphNode(number, operator, name, ranges_text(sorted(read)), toolchain))
    return tuple(records)


def toolchains_by_number(partitions: Sequence[ChosenPartition]) -> dict[int, str]:
    """Return the toolchain of each node of @main that a chosen partition contains."""
    in_main = (item.partition for item in partitions if item.partition.function == "main")
    return {number: partition.toolchain for partition in in_main for number in partition.nodes}


def toolchains_by_name(module: IRModule, placed: IRModule) -> dict[int, str]:
    """Return the toolchain of each node of @main whose name a placed program still has.

    Decisions of passes change nodes and their numbers; the names of the model stay.

    Args:
        module: Program that was tuned.
        placed: Program after the decisions, with functions for toolchains.
    """
    by_name: dict[str, str] = {}
    for marked in marked_functions(placed):
        for expr in post_order(marked.function):
            if expr.span is not None:
                by_name.setdefault(expr.span.node, str(marked.target.toolchain))
    return {number: by_name[name] for number, name in _names(module) if name in by_name}


def _names(module: IRModule) -> Iterator[tuple[int, str]]:
    main = module["main"]
    if isinstance(main, Function):
        graph = DataflowGraph.of(main)
        for number, index in enumerate(stable_nodes(graph)):
            span = graph[index].expr.span
            if span is not None:
                yield number, span.node


def _shown(expr: Expr) -> tuple[str, str] | None:
    """Return the operator and the name of a node of the graph; None for other expressions."""
    if isinstance(expr, Var):
        return "", expr.name
    label = node_label(expr)
    if not label or label in {"tuple", "field", "const", "scalar"}:
        return None
    return label, "" if expr.span is None else expr.span.node
