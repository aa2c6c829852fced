"""Follow an output back through operators that only move its elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from intarsia.ir import Call, Constant, Expr, IRModule, Op, Tuple, with_fields
from intarsia.measure.judge.gate_report import Array
from intarsia.op.evaluate import evaluate_call

_MOVING: Final = frozenset(
    {
        *("Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Transpose", "Expand", "Tile", "Slice"),
        *("DepthToSpace", "SpaceToDepth"),
    }
)
"""Operators with results that are elements of their first argument."""


def outputs_of(module: IRModule) -> tuple[Expr, ...]:
    """The flat outputs of @main, in order."""
    body = module["main"].body
    return body.fields if isinstance(body, Tuple) else (body,)


def operator_name(expr: Expr) -> str:
    """The name of an operator of ONNX's default domain that an expression is a call of; else ""."""
    if isinstance(expr, Call) and isinstance(expr.op, Op) and not expr.op.domain:
        return expr.op.name
    return ""


def moved_from(expr: Expr) -> tuple[Expr, tuple[Call, ...]]:
    """What an expression's elements were before they were moved, and the moves in order."""
    moves: list[Call] = []
    while isinstance(expr, Call) and is_move(expr):
        moves.append(expr)
        expr = expr.args[0]
    return expr, tuple(reversed(moves))


def move(array: Array, moves: Sequence[Call]) -> Array:
    """The array after moves.

    Raises:
        IntarsiaError: A move cannot be computed.
    """
    for item in moves:
        args = (Constant(array), *item.args[1:])
        moved = evaluate_call(with_fields(item, args=args, checked_type=None))
        array = moved[0] if isinstance(moved, tuple) else moved
    return array


def is_move(expr: Expr) -> bool:
    """Whether an expression only moves the elements of its first argument."""
    if not isinstance(expr, Call) or operator_name(expr) not in _MOVING:
        return False
    return all(isinstance(arg, (Constant, Tuple)) for arg in expr.args[1:])
