"""Sealed function literals that are used on both sides of a border."""

from __future__ import annotations

from dataclasses import replace

from intarsia.collage.sub_graph.sub_graph import SubGraph
from intarsia.ir import Call, Expr, Function, children, post_order, with_children
from intarsia.ir.scope import binders, is_atom
from intarsia.op.known_value import known_value, record_known_value


def literal_copies(sub_graph: SubGraph) -> dict[Expr, Expr]:
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
