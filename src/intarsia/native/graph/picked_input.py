"""Inputs of pointwise convolutions with strides: the pixels that they read, copied next to each other.

Conv (N, C, H, W), weights (K, C, 1, 1), strides s   ->   a copy (N, C, H / s, W / s), Conv without strides

A plain input is copied before it is brought into blocks, or becomes the matrix of a product: most of its
pixels are not read at all. Blocked inputs are picked in the kernel of the convolution (`picked_pixels`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from intarsia.ir import DType, TensorType, Var
from intarsia.native.graph.kernel_dag import KernelDag, Source, with_placeholders
from intarsia.native.graph.region_plan import RegionValue
from intarsia.native.graph.straight_line import KernelStep
from intarsia.native.te import compute, placeholder
from intarsia.native.te.expression import Expression
from intarsia.native.te.operators import compute_call_of
from intarsia.native.te.operators.blocked_layout import picks_pixels
from intarsia.native.te.operators.index_arithmetic import scaled
from intarsia.native.te.operators.windows import Window, windows_of


def picked_input(step: KernelStep, values: Sequence[RegionValue]) -> KernelDag | None:
    """Declare the copy of the pixels that a step reads of a plain value.

    Args:
        step: First step of a group.
        values: Values so far, with their chosen layouts.

    Returns:
        None if the step is no pointwise convolution with strides of a plain value of float32.
    """
    if type(step) is not KernelStep or str(step.op) != "Conv" or step.args[0] is None:
        return None  # steps of narrow numbers have windows of their own
    number = step.args[0]
    value = values[number]
    is_plain = value.order is None and values[value.same_as].order is None and value.constant is None
    windows = _windows(step)
    if not is_plain or value.type.dtype is not DType.FLOAT32 or not picks_pixels(windows):
        return None
    x = placeholder(value.type.static_shape, DType.FLOAT32, "x0")

    def element(n: Expression, c: Expression, *at: Expression) -> Expression:
        return x[(n, c, *(scaled(i, window.stride) for i, window in zip(at, windows, strict=True)))]

    picked = compute((*x.shape[:2], *(window.count for window in windows)), element, "picked")
    return with_placeholders((picked,), {x: Source(number)})


def without_strides(step: KernelStep, number: int, type_: TensorType) -> KernelStep:
    """Return a pointwise convolution that reads all pixels of a value.

    Args:
        step: The convolution with strides.
        number: Number of the value.
        type_: Type of the value.
    """
    x, *others = step.call.args
    del x
    attrs = step.call.attrs.updated(strides=(1,) * (len(type_.static_shape) - 2))
    call = replace(step.call, args=(Var("x", checked_type=type_), *others), attrs=attrs)
    return replace(step, call=call, args=(number, *step.args[1:]))


def _windows(step: KernelStep) -> tuple[Window, ...]:
    described = compute_call_of(step.call, "conv")
    return windows_of(described, described.input(0).shape[2:], described.input(1).shape[2:])
