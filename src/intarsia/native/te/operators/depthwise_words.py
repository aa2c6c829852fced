"""Depthwise convolutions of bytes by words: four rows of a channel's window are one dot product.

    word = x[row] | x[row + 1] << 8 | x[row + 2] << 16;   sum += dot(word, weights of three rows)

A word of a column serves all windows that the column is part of. So a 3 x 3 window takes three dot products,
and the words of one column: fewer instructions than nine products in float32, and the conversions before
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from intarsia.ir import DType
from intarsia.native.te import functions
from intarsia.native.te.combiner import Reduction
from intarsia.native.te.compute import compute, reduce_axis
from intarsia.native.te.expression import Expression
from intarsia.native.te.operators.blocked_layout import BLOCKED, CHANNELWISE, axis_names
from intarsia.native.te.operators.integer_sums import dot
from intarsia.native.te.operators.windows import Window, tap_axes
from intarsia.native.te.tensor import Tensor

_WORD: Final = 4
"""Bytes of a word."""
_LEAST_ROWS: Final = 3
"""Rows of a window from which words of rows are worth their making."""


def has_words_of_rows(taps: Sequence[int]) -> bool:
    """Return whether windows of these extents are summed by words of rows."""
    return len(taps) > 1 and taps[-2] >= _LEAST_ROWS


def depthwise_by_words(
    x: Tensor, weight: Tensor, windows: Sequence[Window], padding: int, name: str
) -> Tensor:
    """Declare sums of products of bytes of each channel on its own, in int32.

    Args:
        x: Unsigned bytes (N, C / lanes, spatial ..., lanes).
        weight: Words (C / lanes, taps ..., lanes), as `pack_words_of_rows` makes them.
        windows: Windows of at least two dimensions, one for each spatial dimension.
        padding: Byte of elements beyond the image.
        name: Name of the operation.
    """
    rows = len(windows) - 2
    taps = [
        reduce_axis(weight.shape[1 + axis], "rg") if axis == rows else tap
        for axis, tap in enumerate(tap_axes(windows))
    ]

    def byte(number: int, n: Expression, o: Expression, rest: tuple[Expression, ...]) -> Expression:
        """Return one byte of a word, which is widened."""
        at: list[Expression] = []
        conditions: list[Expression] = []
        for axis, (window, tap) in enumerate(zip(windows, taps, strict=True)):
            step = tap.expression * _WORD + number if axis == rows else tap.expression
            if axis == rows and tap.extent * _WORD > window.taps and number >= window.taps % _WORD:
                conditions.append(step < window.taps)
            position = window.tap_index(rest[axis], step)
            conditions += window.holds(position)
            at.append(position - window.begin if window.begin else position)
        value = x[(n, o, *at, rest[-1])].astype(DType.UINT8).astype(DType.INT32)
        if not conditions:
            return value
        return functions.if_then_else(functions.logical_and(*conditions), value, padding)

    def element(n: Expression, o: Expression, *rest: Expression) -> Reduction:
        word = byte(0, n, o, rest)
        for number in range(1, min(_WORD, windows[rows].taps)):
            shift = functions.const(8 * number, DType.INT32)
            word = functions.call(
                "bit_or", word, functions.call("shift_left", byte(number, n, o, rest), shift)
            )
        return functions.sum(dot(word, weight[(o, *taps, rest[-1])]), taps)

    shape = (*x.shape[:2], *(window.count for window in windows), x.shape[-1])
    return compute(shape, element, name, axis_names(len(windows)), {BLOCKED: CHANNELWISE})


def pack_words_of_rows(weight: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Pack signed bytes (C / lanes, taps ..., lanes) as words of four rows, zeros behind the last one.

    Args:
        weight: The weights, as `pack_depthwise_weight` makes them; rows are the last taps but one.
    """
    missing = -weight.shape[-3] % _WORD
    widths = [(0, missing if axis == weight.ndim - 3 else 0) for axis in range(weight.ndim)]
    wide = np.pad(weight, widths)
    *outer, rows, columns, lanes = wide.shape
    quads = np.moveaxis(wide.reshape(*outer, rows // _WORD, _WORD, columns, lanes), -3, -1)
    return np.ascontiguousarray(quads).view(np.int32)[..., 0]
