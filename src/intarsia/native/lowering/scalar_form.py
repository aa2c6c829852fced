"""Rewriting of scalars without recursion; what is shared stays shared."""

from __future__ import annotations

from collections.abc import Callable

from intarsia.ir.loop_walk import operands, with_operands
from intarsia.ir.prim_func import Scalar
from intarsia.support.post_order import post_order_of


def rewrite(root: Scalar, rule: Callable[[Scalar], Scalar]) -> Scalar:
    """Rewrite a scalar from its leaves on: the rule is applied to each scalar with rewritten operands."""
    rewritten: dict[int, Scalar] = {}
    for scalar in post_order_of((root,), operands):
        rewritten[id(scalar)] = rule(
            with_operands(scalar, [rewritten[id(operand)] for operand in operands(scalar)])
        )
    return rewritten[id(root)]
