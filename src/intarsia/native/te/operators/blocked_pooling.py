"""Pooling of blocked tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from operator import mul

from intarsia.native.te import functions
from intarsia.native.te.combiner import Reduction
from intarsia.native.te.compute import compute, reduce_axis
from intarsia.native.te.expression import Expression
from intarsia.native.te.functions import const, lowest
from intarsia.native.te.operators.blocked_layout import (
    BLOCKED,
    CHANNELWISE,
    GLOBAL_POOL,
    axis_names,
    padded_block,
)
from intarsia.native.te.operators.pooling import as_words, less_zero_points
from intarsia.native.te.operators.reduced_axes import Combine, Prepare, unchanged
from intarsia.native.te.operators.windows import Window, spatial_names, tap_axes, tap_indices
from intarsia.native.te.tensor import Tensor


def blocked_max_pool(x: Tensor, windows: Sequence[Window], name: str) -> Tensor:
    """Declare the largest element of each window of a tensor (N, C / lanes, spatial ..., lanes)."""
    source = padded_block(x, windows, lowest(x.dtype), f"{name}.pad")
    return _pool(source, windows, functions.max, name)


def blocked_average_pool(
    x: Tensor, windows: Sequence[Window], with_padding: bool, name: str, zero: int = 0
) -> Tensor:
    """Declare the mean of each window, of elements or of elements and padding.

    Args:
        x: Blocked tensor of float32 or bytes.
        windows: Windows, one for each spatial dimension.
        with_padding: Whether padding counts.
        name: Name of the operation.
        zero: Zero point of bytes, less which they are summed as integers.
    """
    is_integer = x.dtype.is_integer
    source = padded_block(x, windows, const(zero, x.dtype) if is_integer else 0.0, f"{name}.pad")
    total = _pool(source, windows, functions.sum, f"{name}.sum", as_words if is_integer else unchanged)
    if is_integer:
        taps = math.prod(window.taps for window in windows)
        total = less_zero_points(total, taps * zero, f"{name}.centred")

    def mean(*i: Expression) -> Expression:
        counts = [w.tap_count(place, with_padding) for w, place in zip(windows, i[2:-1], strict=True)]
        if all(isinstance(count, int) for count in counts):
            return total[i] * (1.0 / math.prod(count for count in counts if isinstance(count, int)))
        constant_count = math.prod(count for count in counts if isinstance(count, int))
        variable_counts = [count.astype(total.dtype) for count in counts if isinstance(count, Expression)]
        return total[i] * (1.0 / reduce(mul, variable_counts, const(float(constant_count), total.dtype)))

    return compute(total.shape, mean, name, axis_names(len(windows)))


def blocked_global_pool(x: Tensor, name: str, is_max: bool = False, zero: int = 0) -> Tensor:
    """Declare the mean or the largest element of each channel; the spatial dimensions stay with extent 1.

    Args:
        x: Blocked tensor of float32; of bytes, which are summed as integers, for the mean only.
        name: Name of the operation.
        is_max: Whether the largest element is wanted.
        zero: Zero point of bytes.
    """
    _, _, *spatial, _ = x.shape
    letters = spatial_names(len(spatial))
    taps = tuple(reduce_axis(extent, f"r{letter}") for extent, letter in zip(spatial, letters, strict=True))

    def element(n: Expression, o: Expression, *rest: Expression) -> Reduction:
        combine, number = functions.max if is_max else functions.sum, x[(n, o, *taps, rest[-1])]
        return combine(as_words(number) if x.dtype.is_integer and not is_max else number, taps)

    shape = (*x.shape[:2], *(1 for _ in spatial), x.shape[-1])
    names, attrs = axis_names(len(spatial)), {BLOCKED: GLOBAL_POOL}
    if is_max:
        return compute(shape, element, name, names, attrs)
    total = compute(shape, element, f"{name}.sum", names, attrs)
    if x.dtype.is_integer:
        total = less_zero_points(total, math.prod(spatial) * zero, f"{name}.centred")
    return compute(shape, lambda *i: total[i] * (1.0 / math.prod(spatial)), name, names)


def _pool(
    source: Tensor, windows: Sequence[Window], combine: Combine, name: str, prepare: Prepare = unchanged
) -> Tensor:
    taps = tap_axes(windows)

    def element(n: Expression, o: Expression, *rest: Expression) -> Reduction:
        return combine(prepare(source[(n, o, *tap_indices(windows, rest[:-1], taps), rest[-1])]), taps)

    shape = (*source.shape[:2], *(window.count for window in windows), source.shape[-1])
    return compute(shape, element, name, axis_names(len(windows)), {BLOCKED: CHANNELWISE})
