"""Convolutions in groups, of blocked tensors whose channels lie in any order."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from math import prod
from typing import Final

from intarsia.ir import DType
from intarsia.native.te import functions
from intarsia.native.te.combiner import Reduction
from intarsia.native.te.compute import compute, reduce_axis
from intarsia.native.te.expression import Expression
from intarsia.native.te.operators.blocked_layout import BLOCKED, GROUPED, OWN_BLOCKS, axis_names
from intarsia.native.te.operators.windows import Window, tap_axes, tap_indices
from intarsia.native.te.tensor import Tensor

_WORD_BITS: Final = 32


def grouped_convolution(
    x: Tensor,
    table: Tensor,
    weight: Tensor,
    windows: Sequence[Window],
    name: str,
    numbers: int = 1,
    product: Callable[[Expression, Expression], Expression] = operator.mul,
) -> Tensor:
    """Declare the reduction of a convolution in groups: (N, M / lanes, spatial ..., lanes).

    The blocks of results are shared out to the groups evenly. A group may read channels that lie anywhere.

    Args:
        x: (N, elements of an image), blocked.
        table: (groups, C / groups), int32: offset in an image of a channel's first pixel (`first_pixels`);
            of words, that of the first channel of each.
        weight: (M / lanes, C / groups, taps ..., lanes), as `pack_weight_of_plain` makes it; of words, an
            element for each.
        windows: Windows of the spatial dimensions, which they do not leave.
        name: Name of the operation.
        numbers: Neighbours in `x`, as unsigned bits, that are multiplied as a word; 1 for no words.
        product: Product of an element or word and a weight.
    """
    lanes, group_blocks = weight.shape[-1], weight.shape[0] // table.shape[0]
    channel, taps = reduce_axis(table.shape[1], "rc"), tap_axes(windows)
    extents = [window.extent for window in windows]
    steps = [prod(extents[axis + 1 :]) * lanes for axis in range(len(extents))]

    def element(n: Expression, o: Expression, *rest: Expression) -> Reduction:
        at = table[(o // group_blocks, channel)].astype(DType.INT64)
        for position, step in zip(tap_indices(windows, rest[:-1], taps), steps, strict=True):
            at = at + position * step
        read = x[n, at] if numbers == 1 else _word(x, n, at, numbers)
        return functions.sum(product(read, weight[(o, channel, *taps, rest[-1])]), (channel, *taps))

    shape = (x.shape[0], weight.shape[0], *(window.count for window in windows), lanes)
    return compute(
        shape, element, name, axis_names(len(windows)), {BLOCKED: GROUPED, OWN_BLOCKS: group_blocks}
    )


def _word(x: Tensor, n: Expression, at: Expression, numbers: int) -> Expression:
    """Return neighbours as a word. They are one load, wherever it begins: LLVM joins those of the parts."""
    bits = _WORD_BITS // numbers
    word = x[n, at].astype(DType.INT32)
    for number in range(1, numbers):
        shift = functions.const(bits * number, DType.INT32)
        part = functions.call("shift_left", x[n, at + number].astype(DType.INT32), shift)
        word = functions.call("bit_or", word, part)
    return word
