"""Changing scalars from the leaves up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import assert_never

from intarsia.ir.loop_walk import operands, scalar_post_order
from intarsia.ir.prim_func import Arith, Buffer, Cast, Intrinsic, Literal, Load, LoopVar, Scalar


def rewrite_scalar(root: Scalar, rule: Callable[[Scalar], Scalar]) -> Scalar:
    """A scalar with a rule applied to each part, after its operands."""
    stack: list[Scalar] = []
    for scalar, _ in scalar_post_order(root):
        count = len(operands(scalar))
        below = tuple(stack[len(stack) - count :])
        del stack[len(stack) - count :]
        stack.append(rule(_with_operands(scalar, below)))
    return stack[0]


def with_values(root: Scalar, values: Mapping[str, Scalar]) -> Scalar:
    """A scalar with other scalars for loop variables."""

    def rule(scalar: Scalar) -> Scalar:
        return values.get(scalar.name, scalar) if isinstance(scalar, LoopVar) else scalar

    return rewrite_scalar(root, rule)


def with_buffers(root: Scalar, buffers: Mapping[Buffer, Buffer]) -> Scalar:
    """A scalar that loads from other buffers."""

    def rule(scalar: Scalar) -> Scalar:
        if isinstance(scalar, Load) and scalar.buffer in buffers:
            return Load(buffers[scalar.buffer], scalar.indices)
        return scalar

    return rewrite_scalar(root, rule)


def _with_operands(scalar: Scalar, below: tuple[Scalar, ...]) -> Scalar:
    match scalar:
        case LoopVar() | Literal():
            return scalar
        case Load():
            return replace(scalar, indices=below)
        case Arith():
            return replace(scalar, operands=below)
        case Cast():
            return replace(scalar, value=below[0])
        case Intrinsic():
            return replace(scalar, args=below)
        case _:
            assert_never(scalar)
