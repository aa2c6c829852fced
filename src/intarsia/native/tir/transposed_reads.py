"""Unrolled loops that read a tensor across their vectors: the code generator transposes squares of it."""

from __future__ import annotations

from intarsia.ir.loop_walk import Event, inner_scalars, scalars, walk
from intarsia.ir.prim_func import Allocate, Block, For, ForKind, Load, LoopVar, Scalar, Statement, Store
from intarsia.native.tir.affine import affine


def reads_columns(loop: For) -> bool:
    """Return whether neighbouring iterations of a loop read neighbours, and neighbouring lanes do not.

    The code generator (`emission/transposed_rows.py`) reads rows in place of such columns, if it sees that
    all columns of a square are read: copies of the body would not show that.

    Args:
        loop: Loop; only one that contains vectorised loops of stores, and nothing else, is one.
    """
    inner = loop.body.statements if isinstance(loop.body, Block) else (loop.body,)
    return all(map(_is_vector_loop, inner)) and any(
        _is_across(part, loop.var, lanes.var)
        for lanes in inner
        if isinstance(lanes, For)
        for visit in walk(lanes.body)
        if visit.event is Event.ENTER
        for root in scalars(visit.statement)
        for part in inner_scalars(root)
        if isinstance(part, Load) and part.indices
    )


def _is_vector_loop(statement: Statement) -> bool:
    """Return whether a statement is a vectorised loop that only stores."""
    return (
        isinstance(statement, For)
        and statement.kind is ForKind.VECTORIZED
        and all(isinstance(visit.statement, Store | Block | Allocate) for visit in walk(statement.body))
    )


def _is_across(load: Load, neighbour: LoopVar, lane: LoopVar) -> bool:
    """Return whether a counter selects neighbours, and the lanes select what is farther apart."""
    *outer, last = load.indices
    return (
        affine(last).factor_of(neighbour) == 1
        and not _has(last, lane)
        and any(_has(index, lane) for index in outer)
    )


def _has(index: Scalar, counter: LoopVar) -> bool:
    return counter in inner_scalars(index)
