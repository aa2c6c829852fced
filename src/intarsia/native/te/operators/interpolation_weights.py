"""The weights of the elements around a position between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from intarsia.native.te.expression import Expression

Weights: TypeAlias = Callable[[Expression], Sequence[Expression]]
"""Function from the fraction of a position above its floor to the weights of the indices around it.

There are as many at or below the position as above; the first is that of the least index.
"""


def linear_weights(fraction: Expression) -> Sequence[Expression]:
    """Return the linear weights of two neighbours."""
    return [1.0 - fraction, fraction]


def cubic_weights(a: float) -> Weights:
    """Return the weights of four neighbours: cubic convolution with the parameter a (R. Keys, 1981)."""

    def near(x: Expression) -> Expression:
        return ((a + 2) * x - (a + 3)) * x * x + 1.0

    def far(x: Expression) -> Expression:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    def weights(fraction: Expression) -> Sequence[Expression]:
        rest = 1.0 - fraction
        return [far(fraction + 1.0), near(fraction), near(rest), far(rest + 1.0)]

    return weights
