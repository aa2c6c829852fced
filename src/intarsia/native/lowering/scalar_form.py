"""Rewriting scalars without recursion; what is shared stays shared."""

from __future__ import annotations

from collections.abc import Callable

from intarsia.ir.loop_walk import operands, with_operands
from intarsia.ir.prim_func import Scalar
from intarsia.support.post_order import post_order_of


def rewrite(root: Scalar, rule: Callable[[Scalar], Scalar]) -> Scalar:
    """A scalar rewritten from its leaves on: the rule sees each with its operands rewritten."""
    made: dict[int, Scalar] = {}
    for scalar in post_order_of((root,), operands):
        made[id(scalar)] = rule(with_operands(scalar, [made[id(each)] for each in operands(scalar)]))
    return made[id(root)]
