"""Convolutions of random shapes against their definition."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.unit.native.te.operators.checked_call import Array, check, make_call
from tests.unit.native.te.operators.sliding import FLOATS, Slide, attributes, seeded, slides


@settings(max_examples=examples(80, quick=6), deadline=None)
@given(
    found=slides(),
    batch=st.integers(0, 2),
    groups=st.integers(1, 3),
    channels=st.integers(1, 2),
    made=st.integers(1, 2),
    has_bias=st.booleans(),
    dtype=FLOATS,
)
def test_conv(
    found: list[Slide], batch: int, groups: int, channels: int, made: int, has_bias: bool, dtype: str
) -> None:
    taps = tuple(slide.taps for slide in found)
    x = seeded((batch, groups * channels, *(slide.extent for slide in found)), dtype)
    weight = seeded((groups * made, channels, *taps), dtype, 1)
    bias = seeded((groups * made,), dtype, 2) if has_bias else None
    expected = conv_by_definition(x, weight, bias, found, groups)
    call = make_call("Conv", x, weight, bias, group=groups, kernel_shape=taps, **attributes(found))
    check(call, [expected], length=channels * math.prod(taps))


def conv_by_definition(x: Array, weight: Array, bias: Array | None, found: list[Slide], groups: int) -> Array:
    wide = np.pad(x.astype(np.float64), [(0, 0), (0, 0), *(slide.pads for slide in found)])
    made, channels = weight.shape[0], weight.shape[1]
    result = np.zeros((x.shape[0], made, *(slide.count() for slide in found)))
    for position in np.ndindex(*result.shape[2:]):
        window = tuple(
            slice(at * slide.stride, at * slide.stride + slide.reach, slide.dilation)
            for at, slide in zip(position, found, strict=True)
        )
        for f in range(made):
            first = f // (made // groups) * channels
            part = wide[(slice(None), slice(first, first + channels), *window)]
            result[(slice(None), f, *position)] = (part * weight[f].astype(np.float64)).sum(
                tuple(range(1, part.ndim))
            )
    if bias is not None:
        result += bias.astype(np.float64).reshape(-1, *(1,) * len(found))
    return result.astype(x.dtype)


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER", "VALID"])
@settings(max_examples=examples(20, quick=6), deadline=None)
@given(found=slides(pads=False))
def test_conv_with_automatic_padding(auto_pad: str, found: list[Slide]) -> None:
    x = seeded((1, 2, *(slide.extent for slide in found)))
    padded = [_automatic(slide, auto_pad) for slide in found]
    weight = seeded((3, 2, *(slide.taps for slide in found)), seed=1)
    attrs = {name: value for name, value in attributes(found).items() if name != "pads"}
    expected = conv_by_definition(x, weight, None, padded, 1)
    check(make_call("Conv", x, weight, auto_pad=auto_pad, **attrs), [expected], length=weight.size)


def _automatic(slide: Slide, auto_pad: str) -> Slide:
    if auto_pad == "VALID":
        return slide
    count = -(-slide.extent // slide.stride)
    total = max((count - 1) * slide.stride + slide.reach - slide.extent, 0)
    pads = (total // 2, total - total // 2)
    if auto_pad == "SAME_LOWER":
        pads = (pads[1], pads[0])
    return Slide(slide.extent, slide.taps, slide.stride, slide.dilation, pads)


@settings(max_examples=examples(40, quick=6), deadline=None)
@given(
    found=slides(),
    groups=st.integers(1, 3),
    channels=st.integers(1, 2),
    made=st.integers(1, 2),
    has_bias=st.booleans(),
    data=st.data(),
    dtype=FLOATS,
)
def test_conv_transpose(
    found: list[Slide],
    groups: int,
    channels: int,
    made: int,
    has_bias: bool,
    data: st.DataObject,
    dtype: str,
) -> None:
    taps = tuple(slide.taps for slide in found)
    more = tuple(data.draw(st.integers(0, max(slide.stride, slide.dilation) - 1)) for slide in found)
    whole = [(slide.extent - 1) * slide.stride + slide.reach for slide in found]
    sizes = [size + extra - sum(slide.pads) for size, extra, slide in zip(whole, more, found, strict=True)]
    assume(min(sizes) > 0)
    x = seeded((2, groups * channels, *(slide.extent for slide in found)), dtype)
    weight = seeded((groups * channels, made, *taps), dtype, 1)
    bias = seeded((groups * made,), dtype, 2) if has_bias else None
    full = np.zeros((2, groups * made, *(size + extra for size, extra in zip(whole, more, strict=True))))
    for position in np.ndindex(*x.shape[2:]):
        window = tuple(
            slice(at * slide.stride, at * slide.stride + slide.reach, slide.dilation)
            for at, slide in zip(position, found, strict=True)
        )
        for channel in range(groups * channels):
            group = channel // channels
            part = x[(slice(None), channel, *position)].astype(np.float64)
            kernel = weight[channel].astype(np.float64)
            full[(slice(None), slice(group * made, (group + 1) * made), *window)] += np.multiply.outer(
                part, kernel
            )
    kept = tuple(slice(slide.pads[0], slide.pads[0] + size) for slide, size in zip(found, sizes, strict=True))
    result = full[(slice(None), slice(None), *kept)]
    if bias is not None:
        result = result + bias.astype(np.float64).reshape(-1, *(1,) * len(found))
    call = make_call("ConvTranspose", x, weight, bias, group=groups, output_padding=more, **attributes(found))
    check(call, [result.astype(dtype)], length=channels * math.prod(taps))
