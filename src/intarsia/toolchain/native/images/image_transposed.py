"""The rule for ConvTranspose: a convolution for each position in a step of the result.

Row `step * i + position` of the result adds tap `tap` of row `i + (position + pad - tap * dilation) / step`,
for each tap at which that is a whole number: a window of a few rows, with the taps in reverse.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

import numpy as np

from intarsia.ir import ABSENT, Call, Constant, DType, TensorType, Var
from intarsia.native.execution.size_table import added, constant
from intarsia.op import call as op_call
from intarsia.toolchain.native.images.image_groups import without_multiplier
from intarsia.toolchain.native.images.image_program import RANK, Image, Phase, Read, Window
from intarsia.toolchain.native.images.image_reader import ImageReader, pair


@dataclass(frozen=True, slots=True)
class _Line:
    """What a position reads, along rows or columns.

    Attributes:
        taps: Taps, in the order of what they read.
        dilation: Distance of what two taps read.
        begin: Padding in front of the image.
        end: Padding behind it.
    """

    taps: tuple[int, ...]
    dilation: int
    begin: int
    end: int

    @property
    def reach(self) -> int:
        """Rows or columns from the first tap to the last."""
        return (len(self.taps) - 1) * self.dilation + 1


def transposed(reader: ImageReader, call: Call) -> Image | None:
    """Return the result of ConvTranspose; None if it is no image.

    Raises:
        MixedImagesError: There is no kernel for it.
    """
    image, weight = reader.images.get(call.args[0]), call.args[1]
    if image is None or not isinstance(weight, Constant) or weight.data.ndim != RANK:
        return None
    step, other_step = pair(call, "strides", 1)
    has_size = call.attrs.get("output_shape") or call.attrs.get("auto_pad", "NOTSET") != "NOTSET"
    if has_size or step != other_step:
        raise reader.refusal(call, "has a result whose size is given, or strides that differ")
    if any(not isinstance(arg, Constant) and arg.checked_type != ABSENT for arg in call.args[2:]):
        raise reader.refusal(call, "has a bias that is not constant")
    pads, more = call.attrs.get("pads") or (0,) * 4, pair(call, "output_padding", 0)
    assert isinstance(pads, tuple)
    dilations = pair(call, "dilations", 1)
    padding = [item for item in pads if isinstance(item, int)]
    lines = [
        _lines(
            weight.data.shape[axis + 2], dilations[axis], step, padding[axis], padding[axis + 2] - more[axis]
        )
        for axis in range(2)
    ]
    if any(line is None for axis in lines for line in axis):
        raise reader.refusal(call, "has a result of a size that is no multiple of the stride")
    groups = call.attrs.get("group", 1)
    assert isinstance(groups, int)
    image, channels = reader.in_blocks(image), weight.data.shape[1] * groups
    whole = Image(-1, channels, image.level)
    for row, down in enumerate(lines[0]):
        for column, across in enumerate(lines[1]):
            assert down is not None
            assert across is not None
            part = _part(reader, call, image, weight, down, across)
            whole.level = (
                added(constant(0), part.level[0], step),
                added(constant(0), part.level[1], step),
            )
            if step == 1:
                return part
            part.phase, part.is_stored = Phase(whole, row, column, step), True
    whole.number = len(reader.program.images)
    reader.program.images.append(whole)
    return whole


def _lines(taps: int, dilation: int, step: int, begin: int, end: int) -> list[_Line | None]:
    """Return what each position of a step reads; None where that is no window of the image.

    Args:
        taps: Extent of the window.
        dilation: Distance from tap to tap.
        step: Stride.
        begin: Rows or columns of the result that are cut off in front.
        end: Rows or columns that are cut off behind.
    """
    longer, rest = divmod((taps - 1) * dilation + 1 - step - begin - end, step)
    apart = dilation // gcd(dilation, step)
    lines: list[_Line | None] = []
    for position in range(step):
        chosen = [tap for tap in reversed(range(taps)) if (position + begin - tap * dilation) % step == 0]
        first = (position + begin - chosen[0] * dilation) // step if chosen else 0
        # As many results as rows, and `longer` more.
        behind = longer + (len(chosen) - 1) * apart + first
        is_window = bool(chosen) and not rest and first <= 0 and behind >= 0
        lines.append(_Line(tuple(chosen), apart, -first, behind) if is_window else None)
    return lines


def _part(
    reader: ImageReader, call: Call, image: Image, weight: Constant, down: _Line, across: _Line
) -> Image:
    """Add the image of one position of each step."""
    taps = weight.data[:, :, down.taps][:, :, :, across.taps]
    groups = call.attrs.get("group", 1)
    assert isinstance(groups, int)
    of_groups = taps.reshape(groups, -1, *taps.shape[1:]).swapaxes(1, 2)
    kernel = Constant(np.ascontiguousarray(of_groups.reshape(-1, *of_groups.shape[2:])))
    window = Window((down.reach, across.reach), (1, 1), (down.begin, across.begin), (down.end, across.end))
    shape = (1, image.channels, *window.taps)
    x = Var("x", checked_type=TensorType(shape, DType.FLOAT32))
    conv = op_call(
        "Conv",
        x,
        kernel,
        *call.args[2:],
        group=groups,
        dilations=(down.dilation, across.dilation),
        span=call.span,
    )
    conv = without_multiplier(conv)
    others = [Read(expr=arg) for arg in conv.args[1:]]
    level = reader.after(image.level, window)
    return reader.computed(
        conv, weight.data.shape[1] * groups, level, [reader.windowed(image, window), *others]
    )
