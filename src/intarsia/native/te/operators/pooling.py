"""Pooling: MaxPool, AveragePool, LpPool and those over all spatial dimensions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from operator import mul
from typing import Final, TypeAlias

from intarsia.ir import DType
from intarsia.native.te import functions
from intarsia.native.te.combiner import Reduction
from intarsia.native.te.compute import compute
from intarsia.native.te.expression import Expression
from intarsia.native.te.functions import const, if_then_else, logical_and, lowest, power, sqrt
from intarsia.native.te.operators.compute_call import ComputeCall
from intarsia.native.te.operators.compute_rule import compute_rule
from intarsia.native.te.operators.float32_arithmetic import in_float32
from intarsia.native.te.operators.pooled_positions import max_pool_with_positions
from intarsia.native.te.operators.reduced_axes import (
    Combine,
    Prepare,
    reduce_over,
    reduced_element,
    unchanged,
)
from intarsia.native.te.operators.scalar_functions import absolute
from intarsia.native.te.operators.windows import (
    Window,
    padded,
    spatial_names,
    tap_axes,
    tap_indices,
    windows_of,
)
from intarsia.native.te.tensor import Tensor

ZERO_POINT: Final = "zero_point"
"""Attribute of mean pools of bytes in native kernels: the zero point, less which the bytes are summed."""

Guarded: TypeAlias = Callable[[Expression, Sequence[Expression]], Expression]
"""Function of an element and its indices in padded dimensions to the element, or a constant in padding."""


@compute_rule("MaxPool")
@in_float32
def max_pool(call: ComputeCall) -> Sequence[Tensor]:
    """Declare the largest element of each window, and its position if that is wanted."""
    x, windows = call.input(0), _windows(call)
    neutral = const(lowest(x.dtype), x.dtype)
    if len(call.output_types) > 1:
        source = padded(x, windows, neutral, f"{call.name}.pad")
        return max_pool_with_positions(call, source, windows)
    return [_pool(x, windows, neutral, functions.max, call.shape, call.name)]


@compute_rule("AveragePool")
@in_float32
def average_pool(call: ComputeCall) -> Sequence[Tensor]:
    """Declare the mean of each window, of elements or (count_include_pad) of elements and padding.

    Bytes are summed as integers, with the zero point as padding.
    """
    windows, with_padding = _windows(call), bool(call.integer("count_include_pad"))
    x, zero = call.input(0), call.integer(ZERO_POINT, 0)
    is_integer = x.dtype.is_integer
    prepare = as_words if is_integer else unchanged
    total = _pool(x, windows, const(zero, x.dtype), functions.sum, call.shape, f"{call.name}.sum", prepare)
    if is_integer:
        taps = math.prod(window.taps for window in windows)
        total = less_zero_points(total, taps * zero, f"{call.name}.centred")
    letters, constant_count, shares = spatial_names(len(windows)), 1, dict[int, Tensor]()
    for axis, (window, letter) in enumerate(zip(windows, letters, strict=True)):
        match window.tap_count(const(0, DType.INT64), with_padding):
            case int(number):
                constant_count *= number
            case _:
                shares[axis] = _shares(window, with_padding, total.dtype, f"{call.name}.share_{letter}")

    def mean(*i: Expression) -> Expression:
        value = total[i] if constant_count == 1 else total[i] * (1.0 / constant_count)
        return reduce(mul, (share[i[2 + axis]] for axis, share in shares.items()), value)

    return [compute(call.shape, mean, call.name)]


@compute_rule("LpPool")
@in_float32
def lp_pool(call: ComputeCall) -> Sequence[Tensor]:
    """Declare the p-norm of each window."""
    prepare, finish = _norm(call.integer("p"))
    x, windows = call.input(0), _windows(call)
    total = _pool(x, windows, const(0, x.dtype), functions.sum, call.shape, f"{call.name}.sum", prepare)
    return [compute(call.shape, lambda *i: finish(total[i]), call.name)]


@compute_rule("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
@in_float32
def global_pool(call: ComputeCall) -> Sequence[Tensor]:
    """Declare a pool over all spatial dimensions."""
    x = call.input(0)
    axes = tuple(range(2, len(x.shape)))
    combine, prepare, finish = _global_form(call, float(math.prod(x.shape[2:])))
    if x.dtype.is_integer and combine is functions.sum:
        reduced = reduce_over(x, axes, combine, f"{call.name}.reduced", as_words)
        lost = call.integer(ZERO_POINT, 0) * math.prod(x.shape[2:])
        reduced = less_zero_points(reduced, lost, f"{call.name}.centred")
    else:
        reduced = reduce_over(x, axes, combine, f"{call.name}.reduced", prepare)
    return [compute(call.shape, lambda *i: finish(reduced_element(reduced, i, axes)), call.name)]


def _global_form(call: ComputeCall, count: float) -> tuple[Combine, Prepare, Prepare]:
    match call.op_name:
        case "GlobalMaxPool":
            return functions.max, unchanged, unchanged
        case "GlobalAveragePool":
            return functions.sum, unchanged, lambda x: x / count
        case _:
            return (functions.sum, *_norm(call.integer("p")))


def as_words(byte: Expression) -> Expression:
    """Return a byte as an int32, as which it is summed."""
    return byte.astype(DType.INT32)


def less_zero_points(total: Tensor, offset: int, name: str) -> Tensor:
    """Declare sums of bytes less the sum of their zero points, in float32."""
    return compute(
        total.shape, lambda *i: (total[i] - const(offset, DType.INT32)).astype(DType.FLOAT32), name
    )


def _norm(p: int) -> tuple[Prepare, Callable[[Expression], Expression]]:
    """Return the function of each element that a p-norm sums, and the function of the sum."""
    if p == 1:
        return absolute, unchanged
    if p == 2:
        return lambda x: x * x, sqrt
    return lambda x: power(absolute(x), float(p)), lambda x: power(x, 1.0 / p)


def _windows(call: ComputeCall) -> tuple[Window, ...]:
    return windows_of(call, call.input(0).shape[2:], call.integers("kernel_shape"))


def _pool(
    x: Tensor,
    windows: Sequence[Window],
    neutral: Expression,
    combine: Combine,
    shape: Sequence[int],
    name: str,
    prepare: Prepare = unchanged,
) -> Tensor:
    """Combine the elements of each window, in two stages if that takes fewer operations.

    The first stage combines whole rows, the second one the elements of the combined row. So a window of 5 x 5
    takes ten operations, not 25, and the first stage reads neighbours whatever the stride. Padding above and
    below is left out of the sums of rows by guards, which cutting loops removes, and combined rows are padded
    on the left and right: a padded copy of all rows would be written and read first.

    Args:
        x: Tensor without padding.
        windows: Windows along its spatial dimensions.
        neutral: Value of the padding.
        combine: Reduction of elements.
        shape: Shape of the result.
        name: Name of the last stage.
        prepare: Function of each element before it is combined.
    """
    *outer, last = windows
    height = math.prod(window.taps for window in outer)
    # Two stages of as many operations pay where they save a padded copy larger than the combined rows.
    most = height * last.taps - (last.stride == 1 or all(window.is_inside for window in windows))
    if most < height + last.taps or last.count == 1:
        source = padded(x, windows, neutral, f"{name}.pad")
        return _combined(source, windows, combine, shape, name, prepare)
    leading = len(x.shape) - len(windows)
    stretched = Window(x.shape[-1], x.shape[-1], 1, 1, 1, 0, 0)

    def guarded(element: Expression, positions: Sequence[Expression]) -> Expression:
        pairs = zip(outer, positions, strict=True)
        conditions = [condition for window, position in pairs for condition in window.holds(position)]
        return if_then_else(logical_and(*conditions), element, neutral) if conditions else element

    rows = (*shape[:leading], *(window.count for window in outer), x.shape[-1])
    combined = _combined(x, (*outer, stretched), combine, rows, f"{name}.rows", prepare, guarded)
    singles = tuple(Window(window.count, window.count, 1, 1, 1, 0, 0) for window in outer)
    along = (*singles, last)
    sides = prepare(neutral)
    if combine is functions.sum and x.dtype.is_integer:
        sides = sides * height  # a column of padding has as many zero points as the window has rows
    source = padded(combined, along, sides, f"{name}.pad")
    return _combined(source, along, combine, shape, name, unchanged)


def _combined(
    source: Tensor,
    windows: Sequence[Window],
    combine: Combine,
    shape: Sequence[int],
    name: str,
    prepare: Prepare,
    guarded: Guarded | None = None,
) -> Tensor:
    """Combine the elements of each window of a padded tensor, or of one without padding under guards."""
    taps = tap_axes(windows)

    def element(n: Expression, c: Expression, *positions: Expression) -> Reduction:
        at = tap_indices(windows, positions, taps)
        if guarded is None:
            return combine(prepare(source[(n, c, *at)]), taps)
        shifted = [
            index - window.begin if window.begin else index for window, index in zip(windows, at, strict=True)
        ]
        return combine(prepare(guarded(source[(n, c, *shifted)], at[:-1])), taps)

    return compute(shape, element, name, ("n", "c", *spatial_names(len(windows))))


def _shares(window: Window, with_padding: bool, dtype: DType, name: str) -> Tensor:
    """Declare one by the number of elements of the window at each position: a stage shared by all planes."""

    def share(position: Expression) -> Expression:
        count = window.tap_count(position, with_padding)
        assert isinstance(count, Expression), "the caller has looked"
        return 1.0 / count.astype(dtype)

    return compute((window.count,), share, name)
