"""Expand and Tile."""

from __future__ import annotations

from collections.abc import Sequence

from intarsia.native.te.compute import compute
from intarsia.native.te.operators.broadcasting import element_at
from intarsia.native.te.operators.compute_call import ComputeCall
from intarsia.native.te.operators.compute_rule import compute_rule
from intarsia.native.te.operators.index_arithmetic import ZERO
from intarsia.native.te.tensor import Tensor


@compute_rule("Expand")
def expand(call: ComputeCall) -> Sequence[Tensor]:
    """Declare the argument broadcast; dimensions of the wanted shape that are 1 leave it as it is."""
    x = call.input(0)
    return [compute(call.shape, lambda *i: element_at(x, i), call.name)]


@compute_rule("Tile")
def tile(call: ComputeCall) -> Sequence[Tensor]:
    """Declare the argument repeated along each axis."""
    x = call.input(0)
    extents = list(zip(x.shape, call.shape, strict=True))
    return [
        compute(
            call.shape,
            lambda *i: x[
                tuple(
                    ZERO if n <= 1 else each if n == m else each % n
                    for each, (n, m) in zip(i, extents, strict=True)
                )
            ],
            call.name,
        )
    ]
