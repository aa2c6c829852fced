"""A sub-graph made into a function."""

from __future__ import annotations

from dataclasses import replace

from intarsia.collage.sub_graph.constant_placement import ConstantPlacement
from intarsia.collage.sub_graph.contraction import contracted
from intarsia.collage.sub_graph.sub_graph import SubGraph
from intarsia.ir import Attrs, Call, Constant, Expr, Function, children, post_order, with_children
from intarsia.ir.scope import binders, is_atom
from intarsia.op.known_value import known_value, record_known_value
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
    results = contracted(outputs, inner, params, _literal_copies(sub_graph))
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


def _literal_copies(sub_graph: SubGraph) -> dict[Expr, Expr]:
    """A copy of each sealed literal that is used inside and outside.

    A function that is compiled on its own must not use one from around. What a literal captures is shared by
    the copy. Linear in these literals.
    """
    graph, inside = sub_graph.graph, sub_graph.inside
    copies: dict[Expr, Expr] = {}
    for index in inside:
        for used in graph[index].inputs:
            literal = graph[used].expr
            if not isinstance(literal, Function) or used not in graph.inlinable or literal in copies:
                continue
            if any(user not in inside for user in graph[used].outputs):
                copies[literal] = _copied(literal, set(graph.exprs(graph[used].inputs)))
    return copies


def _copied(literal: Function, captured: set[Expr]) -> Expr:
    """The literal with all that it binds and computes made anew."""
    order = list(post_order(literal, stop=captured))
    bound = {var for expr in order for var in binders(expr)}
    done: dict[Expr, Expr] = {expr: expr for expr in captured}
    for expr in order:
        if is_atom(expr):
            done[expr] = replace(expr) if expr in bound else expr
            continue
        new = with_children(expr, tuple(done[child] for child in children(expr)))
        done[expr] = replace(new) if new is expr else new
        if isinstance(expr, Call) and isinstance(made := done[expr], Call) and known_value(expr) is not None:
            record_known_value(made)
    return done[literal]
