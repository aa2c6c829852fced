"""Inputs of convolutions with strides along dimensions of one tap: what they read, copied next to each other.

Conv (N, C, H, W), weights (K, C, 1, 1), strides s   ->   a copy (N, C, H / s, W / s), Conv without strides
weights (K, C, 3, 1), strides s                      ->   a copy (N, C, H, W / s), Conv with strides (s, 1)

A plain input is copied before it is brought into blocks, or becomes the matrix of a product: most of its
pixels are not read at all. Blocked inputs are picked in the kernel of the convolution (`picked_pixels`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from intarsia.ir import DType, TensorType, Var
from intarsia.native.graph.kernel_dag import KernelDag, Source, with_placeholders
from intarsia.native.graph.region_plan import RegionValue
from intarsia.native.graph.straight_line import KernelStep
from intarsia.native.te import compute, placeholder
from intarsia.native.te.expression import Expression
from intarsia.native.te.operators import compute_call_of
from intarsia.native.te.operators.index_arithmetic import scaled
from intarsia.native.te.operators.windows import Window, windows_of

_LEAST_CHANNELS: Final = 16
"""Minimum number of filters and of channels of windows with several taps: with fewer of them, and in groups,
kernels read the plain input themselves, and leave out what strides do."""


def picked_input(step: KernelStep, values: Sequence[RegionValue]) -> KernelDag | None:
    """Declare the copy of the pixels that a step reads of a plain value.

    Args:
        step: First step of a group.
        values: Values so far, with their chosen layouts.

    Returns:
        None if the step is no such convolution of a plain value of float32.
    """
    if type(step) is not KernelStep or str(step.op) != "Conv" or step.args[0] is None:
        return None  # steps of narrow numbers have windows of their own
    number = step.args[0]
    value = values[number]
    is_plain = value.order is None and values[value.same_as].order is None and value.constant is None
    strides = _strides(step)
    if not is_plain or value.type.dtype is not DType.FLOAT32 or set(strides) == {1}:
        return None
    x = placeholder(value.type.static_shape, DType.FLOAT32, "x0")

    def element(n: Expression, c: Expression, *at: Expression) -> Expression:
        return x[(n, c, *map(scaled, at, strides))]

    spatial = (-(-extent // stride) for extent, stride in zip(x.shape[2:], strides, strict=True))
    picked = compute((*x.shape[:2], *spatial), element, "picked")
    return with_placeholders((picked,), {x: Source(number)})


def without_strides(step: KernelStep, number: int, type_: TensorType) -> KernelStep:
    """Return a convolution that reads the picked elements.

    Args:
        step: The convolution with strides.
        number: Number of the copy.
        type_: Type of the copy.
    """
    pairs = zip(_windows(step), _strides(step), strict=True)
    strides = tuple(window.stride // picked for window, picked in pairs)
    call = step.call
    args = (Var("x", checked_type=type_), *call.args[1:])
    call = replace(call, args=args, attrs=call.attrs.updated(strides=strides))
    return replace(step, call=call, args=(number, *step.args[1:]))


def _strides(step: KernelStep) -> list[int]:
    """Return the distance of the elements that a convolution reads in each dimension: 1 with several taps."""
    windows, described = _windows(step), compute_call_of(step.call, "conv")
    is_blocked = described.integer("group") == 1 and min(described.input(1).shape[:2]) >= _LEAST_CHANNELS
    if not (is_blocked or all(window.taps == 1 for window in windows)):
        return [1] * len(windows)
    return [window.stride if window.taps == 1 and window.is_inside else 1 for window in windows]


def _windows(step: KernelStep) -> tuple[Window, ...]:
    described = compute_call_of(step.call, "conv")
    return windows_of(described, described.input(0).shape[2:], described.input(1).shape[2:])
