"""Bottom-up rewriting of scalars."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from intarsia.ir.loop_walk import copy_over, operands, scalar_post_order
from intarsia.ir.prim_func import Buffer, Load, LoopVar, Scalar


def rewrite_scalar(root: Scalar, rule: Callable[[Scalar], Scalar]) -> Scalar:
    """Return a scalar with a rule applied to each part, after its operands."""
    stack: list[Scalar] = []
    for scalar, _ in scalar_post_order(root):
        count = len(operands(scalar))
        below = tuple(stack[len(stack) - count :])
        del stack[len(stack) - count :]
        stack.append(rule(copy_over(scalar, below)))  # copies: lowering puts shared scalars into registers
    return stack[0]


def with_values(root: Scalar, values: Mapping[str, Scalar]) -> Scalar:
    """Return a scalar with loop variables replaced by other scalars."""

    def rule(scalar: Scalar) -> Scalar:
        return values.get(scalar.name, scalar) if isinstance(scalar, LoopVar) else scalar

    return rewrite_scalar(root, rule)


def with_buffers(root: Scalar, buffers: Mapping[Buffer, Buffer]) -> Scalar:
    """Return a scalar that loads from other buffers."""

    def rule(scalar: Scalar) -> Scalar:
        if isinstance(scalar, Load) and scalar.buffer in buffers:
            return Load(buffers[scalar.buffer], scalar.indices)
        return scalar

    return rewrite_scalar(root, rule)
