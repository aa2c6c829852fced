"""The fewest products that a call can be computed with."""

from __future__ import annotations

from typing import Final

from intarsia.ir import Call, Expr
from intarsia.native.graph.convolution_algorithm import transformable_shape
from intarsia.op.work import multiply_adds

_SAVED: Final = 4.0
"""Factor by which F(4x4, 3x3), the fastest algorithm that is accurate enough, saves products."""


def least_multiply_adds(expr: Expr) -> float:
    """Return the multiply-adds of a call by the algorithm that needs the fewest; 0 if it is no product.

    Convolutions that algorithms of Winograd's fit count with what these leave.
    """
    products = multiply_adds(expr)
    if not products or not isinstance(expr, Call) or not transformable_shape(expr):
        return products
    return products / _SAVED
