"""Windows of which some taps read nothing but padding."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from intarsia.ir import Call, Constant, Expr, with_fields
from intarsia.op import call as make_call
from intarsia.op.window import AxisWindow, convolution_windows
from intarsia.passes.rules.rule_table import RuleTable


def conv_with_less_taps(call: Call) -> Expr | None:
    """A Conv whose outer taps read nothing but zeros around the image, as a Conv without these taps.

    A window with dilation 12 on an image of 8 x 8 pixels reads nothing but its middle.
    """
    weight, windows = call.args[1], convolution_windows(call)
    if not isinstance(weight, Constant) or windows is None:
        return None
    kept = [_kept_taps(window) for window in windows]
    if any(not taps for taps in kept) or all(
        len(taps) == window.taps for taps, window in zip(kept, windows, strict=True)
    ):
        return None
    inner = (slice(None), slice(None), *(slice(taps.start, taps.stop) for taps in kept))
    # A product of zero and infinity is no number, and stays one.
    if not np.isfinite(weight.data).all():
        return None
    ends = [_image_end(window, taps) for window, taps in zip(windows, kept, strict=True)]
    begins = [window.begin - taps.start * window.dilation for window, taps in zip(windows, kept, strict=True)]
    image = _cut(call.args[0], [-min(0, pad) for pad in begins], ends, windows)
    after = [max(0, end - window.extent) for end, window in zip(ends, windows, strict=True)]
    attrs = call.attrs.updated(
        kernel_shape=tuple(map(len, kept)), pads=(*(max(0, pad) for pad in begins), *after), auto_pad=None
    )
    args = (image, Constant(np.ascontiguousarray(weight.data[inner])), *call.args[2:])
    return with_fields(call, args=args, attrs=attrs)


def _kept_taps(window: AxisWindow) -> range:
    """Return the taps from the first to the last that reads an element at some position."""
    reading = [tap for tap, reads in enumerate(window.reads) if reads]
    return range(reading[0], reading[-1] + 1) if reading else range(0)


def _image_end(window: AxisWindow, taps: range) -> int:
    """Return the position behind the last tap of the last window, counted from the first element."""
    last = (window.count - 1) * window.stride + (taps.stop - 1) * window.dilation
    return last + 1 - window.begin


def _cut(image: Expr, begins: Sequence[int], ends: Sequence[int], windows: Sequence[AxisWindow]) -> Expr:
    """Return the part of an image that windows without padding read, where padding would be negative."""
    # Elements behind the last window are not worth a Slice, unless another window fits there.
    stops = [
        end if end + window.stride <= window.extent else window.extent
        for end, window in zip(ends, windows, strict=True)
    ]
    axes = [
        axis
        for axis, (begin, stop, window) in enumerate(zip(begins, stops, windows, strict=True))
        if begin or stop < window.extent
    ]
    if not axes:
        return image
    places = [[begins[axis] for axis in axes], [stops[axis] for axis in axes], [axis + 2 for axis in axes]]
    return make_call("Slice", image, *(Constant(np.asarray(place, np.int64)) for place in places))


RULES: RuleTable = {"Conv": (conv_with_less_taps,)}
