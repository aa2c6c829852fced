"""Col2Im."""

from __future__ import annotations

import math
from collections.abc import Sequence

from intarsia.native.te.compute import compute, reduce_axis
from intarsia.native.te.expression import Expression
from intarsia.native.te.functions import const, equal, if_then_else, logical_and
from intarsia.native.te.functions import sum as te_sum
from intarsia.native.te.operators.compute_call import ComputeCall
from intarsia.native.te.operators.compute_rule import compute_rule
from intarsia.native.te.operators.float32_arithmetic import in_float32
from intarsia.native.te.operators.index_arithmetic import flat, scaled
from intarsia.native.te.tensor import Tensor


@compute_rule("Col2Im")
@in_float32
def col2im(call: ComputeCall) -> Sequence[Tensor]:
    """Declare an image: at each position the sum of the columns' elements that were taken from it."""
    x = call.input(0)
    image, block = call.shape[2:], call.known_ints(2) or ()
    rank = len(image)
    dilations, strides = call.integers("dilations", (1,) * rank), call.integers("strides", (1,) * rank)
    pads = call.integers("pads", (0,) * (2 * rank))
    steps = [
        (n + pads[k] + pads[rank + k] - dilations[k] * (block[k] - 1) - 1) // strides[k] + 1
        for k, n in enumerate(image)
    ]
    axes = [reduce_axis(extent, f"r{k}") for k, extent in enumerate(block)]
    taps = [axis.expression for axis in axes]

    def element(n: Expression, c: Expression, *position: Expression) -> Expression:
        tests, columns = [], []
        for k, index in enumerate(position):
            distance = scaled(index, 1, pads[k]) - scaled(taps[k], dilations[k])
            columns.append(distance // strides[k])
            tests += [distance >= 0, columns[k] < steps[k]]
            tests += [equal(distance % strides[k], 0)] if strides[k] > 1 else []
        channel = scaled(c, math.prod(block)) + flat(taps, block)
        return if_then_else(logical_and(*tests), x[n, channel, flat(columns, steps)], const(0, x.dtype))

    return [compute(call.shape, lambda *i: te_sum(element(*i), axes), call.name)]
