"""Pad and CenterCropPad."""

from __future__ import annotations

from collections.abc import Sequence

from intarsia.ir import DType
from intarsia.native.te.compute import compute
from intarsia.native.te.expression import Expression
from intarsia.native.te.functions import const, if_then_else, logical_and, maximum, minimum, select
from intarsia.native.te.operators.compute_call import ComputeCall
from intarsia.native.te.operators.compute_rule import compute_rule
from intarsia.native.te.operators.index_arithmetic import ZERO, front, scaled
from intarsia.native.te.tensor import Tensor


@compute_rule("Pad")
def pad(call: ComputeCall) -> Sequence[Tensor]:
    """Declare padding in all modes; negative pads crop first, as in other engines."""
    x = call.input(0)
    rank = len(x.shape)
    given = call.known_ints(1) or ()
    axes = call.known_ints(3)
    axes = tuple(range(rank)) if axes is None else axes
    begins, ends = [0] * rank, [0] * rank
    for position, axis in enumerate(axes):
        begins[front(axis, rank)] = given[position]
        ends[front(axis, rank)] = given[len(axes) + position]
    mode = call.text("mode", "constant")
    if mode == "constant":
        return [padded(x, begins, ends, _pad_value(call, x.dtype), call.name)]
    if mode not in ("edge", "reflect", "wrap"):
        raise call.not_covered(f"the mode {mode}")
    borders = list(zip(begins, ends, x.shape, strict=True))
    if any(b > 0 or e > 0 for b, e, n in borders if n + min(b, 0) + min(e, 0) <= 0):
        raise call.not_covered(f"the mode {mode} on an axis without elements")
    return [
        compute(
            call.shape,
            lambda *i: x[
                tuple(_mirrored(mode, each, *border) for each, border in zip(i, borders, strict=True))
            ],
            call.name,
        )
    ]


def padded(x: Tensor, begins: Sequence[int], ends: Sequence[int], value: Expression, name: str) -> Tensor:
    """Declare a tensor with elements of one value around it on each axis; negative numbers crop."""
    shape = [b + n + e for b, n, e in zip(begins, x.shape, ends, strict=True)]

    def element(*indices: Expression) -> Expression:
        inside: list[Expression] = []
        for index, begin, extent, end in zip(indices, begins, x.shape, ends, strict=True):
            inside += [index >= begin] if begin > 0 else []
            inside += [index < begin + extent] if end > 0 else []
        found = x[tuple(scaled(index, 1, -begin) for index, begin in zip(indices, begins, strict=True))]
        return if_then_else(logical_and(*inside), found, value) if inside else found

    return compute(shape, element, name)


def _pad_value(call: ComputeCall, dtype: DType) -> Expression:
    if not call.has_input(2):
        return const(0, dtype)
    known = call.constants[2]
    if known is not None:
        return const(known.reshape(-1)[0].item(), dtype)
    value = call.input(2)
    return value[(ZERO,) * len(value.shape)]


def _mirrored(mode: str, index: Expression, begin: int, end: int, extent: int) -> Expression:
    """Return the index of an element outside: of the border, mirrored at it, or from the other side."""
    low = max(0, -begin)
    count = extent - low - max(0, -end)
    if count <= 1 and (begin > 0 or end > 0):
        return ZERO + low if low else ZERO
    inner = scaled(index, 1, -max(begin, 0))
    far = max(begin, end)
    if begin <= 0 and end <= 0:
        return scaled(inner, 1, low)
    match mode:
        case "edge":
            inner = maximum(inner, 0) if begin > 0 else inner
            inner = minimum(inner, count - 1) if end > 0 else inner
        case "reflect":
            # One reflection at each end reaches everything if the padding is shorter than the axis.
            inner = _reflected(inner, begin, end, count) if far < count else _folded(inner, count)
        case _:
            inner = _around(inner, begin, end, count) if far <= count else inner % count
    return scaled(inner, 1, low)


def _reflected(inner: Expression, begin: int, end: int, count: int) -> Expression:
    inner = maximum(inner, 0 - inner) if begin > 0 else inner
    return minimum(inner, 2 * (count - 1) - inner) if end > 0 else inner


def _folded(inner: Expression, count: int) -> Expression:
    inner = inner % (2 * (count - 1))
    return minimum(inner, 2 * (count - 1) - inner)


def _around(inner: Expression, begin: int, end: int, count: int) -> Expression:
    inner = select(inner < 0, inner + count, inner) if begin > 0 else inner
    return select(inner >= count, inner - count, inner) if end > 0 else inner


@compute_rule("CenterCropPad")
def center_crop_pad(call: ComputeCall) -> Sequence[Tensor]:
    """Declare the middle of a tensor, or zeros around it; the larger half of a difference is at the end."""
    x = call.input(0)
    begins = [_centered(wanted - extent) for wanted, extent in zip(call.shape, x.shape, strict=True)]
    ends = [w - n - b for w, n, b in zip(call.shape, x.shape, begins, strict=True)]
    return [padded(x, begins, ends, const(0, x.dtype), call.name)]


def _centered(difference: int) -> int:
    return difference // 2 if difference >= 0 else -((-difference) // 2)
