"""How the time of a program divides among its operators, guessed from what they compute and move."""

from __future__ import annotations

from math import prod
from typing import Final

from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.collage.rules.must_be_lowered import must_be_lowered
from intarsia.ir import Call, TensorType, TupleType, Type
from intarsia.op.work import multiply_adds

MULTIPLY_ADDS_PER_BYTE: Final = 4
"""Multiply-adds that take as long as moving a byte: a core's peak over its bandwidth, roughly, on CPUs."""


def work_shares(graph: DataflowGraph) -> dict[int, float]:
    """The share of each node that must be run in the time of all, by index; they add up to 1.

    Convolutions and matrix products count by their multiply-adds, everything by the bytes that it moves.
    """
    weights = {
        node.index: _weight(node.expr)
        for node in graph
        if must_be_lowered(node.expr) and isinstance(node.expr, Call)
    }
    total = sum(weights.values()) or 1.0
    return {index: weight / total for index, weight in weights.items()}


def _weight(call: Call) -> float:
    moved = value_bytes(call.checked_type) + sum(value_bytes(arg.checked_type) for arg in call.args)
    return 1.0 + moved + multiply_adds(call) / MULTIPLY_ADDS_PER_BYTE


def value_bytes(type_: Type | None) -> int:
    """Bytes of a value; symbolic dimensions count as 1, what is no tensor as nothing."""
    match type_:
        case TensorType(shape=shape, dtype=dtype) if shape is not None:
            count = prod(dim if isinstance(dim, int) else 1 for dim in shape)
            return count * dtype.numpy.itemsize
        case TupleType(fields=fields):
            return sum(map(value_bytes, fields))
        case _:
            return 0
