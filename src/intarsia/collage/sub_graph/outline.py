"""A sub-graph made into a function."""

from __future__ import annotations

from intarsia.collage.sub_graph.constant_placement import ConstantPlacement
from intarsia.collage.sub_graph.contraction import contracted
from intarsia.collage.sub_graph.literal_copy import literal_copies
from intarsia.collage.sub_graph.sub_graph import SubGraph
from intarsia.ir import Attrs, Constant, Expr, children, post_order
from intarsia.passes.regions.outline import Outline, outline_params


def outline(sub_graph: SubGraph, attrs: Attrs, constants: ConstantPlacement) -> Outline:
    """The function of a valid sub-graph, its nested sub-graphs called as functions inside.

    What flows in are its parameters, in order of first use below its results, so that equal sub-graphs make
    equal functions. Its results are the exits in order, as a tuple if there are two or more. Linear in the
    sub-graph, and the sealed literals in it, times the depth of nesting.
    """
    outputs = sub_graph.graph.exprs(sub_graph.exit)
    params = outline_params(_arguments(sub_graph, outputs, constants))
    inner = [outline(one.sub_graph, one.attrs, constants) for one in sub_graph.nested]
    results = contracted(outputs, inner, params, literal_copies(sub_graph))
    return Outline.of(params, results, outputs, attrs)


def _arguments(
    sub_graph: SubGraph, outputs: tuple[Expr, ...], constants: ConstantPlacement
) -> tuple[Expr, ...]:
    handed_over = {
        sub_graph.graph[index].expr for index in sub_graph.input if _is_handed(sub_graph, index, constants)
    }
    used: dict[Expr, None] = {}
    for expr in post_order(*outputs, stop=handed_over):
        used.update((child, None) for child in children(expr) if child in handed_over)
    return tuple(used)


def _is_handed(sub_graph: SubGraph, index: int, constants: ConstantPlacement) -> bool:
    graph = sub_graph.graph
    expr = graph[index].expr
    if not isinstance(expr, Constant):
        return True
    users = (user for user in graph.flow_outputs[index] if user in sub_graph.inside)
    return constants.is_parameter(expr, graph.exprs(users))
