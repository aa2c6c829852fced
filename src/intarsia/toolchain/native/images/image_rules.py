"""Rules for the operators that compute images: windows, pools, joins, and enlarging."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from intarsia.ir import ABSENT, Call, Constant, Function
from intarsia.native.graph.blocked_steps import POINTWISE
from intarsia.native.sizes.image_writer import ImageMove, Move
from intarsia.passes.rules.tensor_facts import operator_name
from intarsia.toolchain.native.images.image_groups import without_multiplier
from intarsia.toolchain.native.images.image_program import (
    ONE_PIXEL,
    RANK,
    Image,
    ImageProgram,
    Read,
)
from intarsia.toolchain.native.images.image_reader import ImageReader, Rule
from intarsia.toolchain.native.images.image_resizing import resized
from intarsia.toolchain.native.images.image_shapes import numbers_of, plain_numbers
from intarsia.toolchain.native.images.image_transposed import transposed

_FEW_CHANNELS: Final = 4
"""Maximum number of channels of a parameter that convolutions read as it is, without blocks."""


def image_program(function: Function, lanes: int) -> ImageProgram:
    """Return the images of a typed program.

    Args:
        function: The program, with symbols for height or width.
        lanes: Number of channels of a block.

    Raises:
        MixedImagesError: It has something that there are no kernels for.
    """
    return ImageReader(function, lanes).read(_RULES)


def _pointwise(reader: ImageReader, call: Call) -> Image | None:
    images = [reader.images[arg] for arg in call.args if arg in reader.images]
    if not images:
        return None
    channels = max(image.channels for image in images)
    whole = [image for image in images if image.level != ONE_PIXEL] or images
    level = whole[0].level
    for image in images:
        if image.channels != channels or (image.level != level and image.level != ONE_PIXEL):
            if image.channels != channels:
                raise reader.refusal(call, "combines images of different numbers of channels")
            reader.program.equal += zip(image.level, level, strict=True)
    reads = []
    for arg in call.args:
        if arg in reader.images:
            reads.append(Read(reader.in_blocks(reader.images[arg])))
        elif (isinstance(arg, Constant) and _is_of_channels(arg, channels)) or arg.checked_type == ABSENT:
            reads.append(Read(expr=arg))
        else:
            raise reader.refusal(call, "reads what has no kernel for images of any size")
    return reader.computed(call, channels, level, reads)


def _convolution(reader: ImageReader, call: Call) -> Image | None:
    image, weight = reader.images.get(call.args[0]), call.args[1]
    if image is None or not isinstance(weight, Constant) or weight.data.ndim != RANK:
        raise reader.refusal(call, "has weights that are not constant")
    if any(not isinstance(arg, Constant) and arg.checked_type != ABSENT for arg in call.args[2:]):
        raise reader.refusal(call, "has a bias that is not constant")
    call = without_multiplier(call)
    groups = call.attrs.get("group", 1)
    if image.is_plain and (groups != 1 or image.channels > _FEW_CHANNELS):
        image = reader.in_blocks(image)
    window = reader.window_of(call, image.level, weight.data.shape[2:], 0.0)
    read = reader.windowed(image, window)
    level = reader.after(image.level, window)
    others = [Read(expr=arg) for arg in call.args[1:]]
    return reader.computed(call, weight.data.shape[0], level, [read, *others])


def _pool(reader: ImageReader, call: Call) -> Image | None:
    image = reader.images.get(call.args[0])
    taps = call.attrs.get("kernel_shape")
    if image is None or not isinstance(taps, tuple) or len(taps) != 2:
        return None
    is_max = operator_name(call) == "MaxPool"
    window = reader.window_of(
        call,
        image.level,
        [int(item) for item in taps if isinstance(item, int)],
        -math.inf if is_max else 0.0,
    )
    has_padding = any((*window.begins, *window.ends))
    counts = is_max or (call.attrs.get("count_include_pad", 0) and window.counts is None) or not has_padding
    if not counts:
        raise reader.refusal(call, "counts the elements of windows at the border")
    image = reader.in_blocks(image)
    read = reader.windowed(image, window)
    return reader.computed(call, image.channels, reader.after(image.level, window), [read])


def _global(reader: ImageReader, call: Call, move: Move) -> Image | None:
    image = reader.images.get(call.args[0])
    return None if image is None else _pooled(reader, image, move)


def _pooled(reader: ImageReader, image: Image, move: Move) -> Image:
    source = reader.stored(reader.in_blocks(image))
    form = ImageMove(move, reader.lanes, image.channels)
    return reader.new(image.channels, ONE_PIXEL, move=form, source=source)


def _reduced(reader: ImageReader, call: Call) -> Image | None:
    image = reader.images.get(call.args[0])
    axes = plain_numbers(numbers_of(call.args[1])) if len(call.args) > 1 else None
    if image is None or axes is None or sorted(axis % RANK for axis in axes) != [2, 3]:
        return None
    pooled = _pooled(reader, image, Move.MEAN)
    if call.attrs.get("keepdims", 1):
        return pooled
    reader.enter_head(call, pooled)
    return None


def _concat(reader: ImageReader, call: Call) -> Image | None:
    images = [reader.images.get(arg) for arg in call.args]
    parts = [image for image in images if image is not None]
    if len(parts) != len(images) or call.attrs.get("axis") not in (1, 1 - RANK):
        return None
    for image in parts[1:]:
        reader.program.equal += zip(image.level, parts[0].level, strict=True)
    blocked: list[Image] = []
    for image in parts:
        part = reader.stored(reader.in_blocks(image))
        is_taken = part.whole is not None or part.phase is not None or part.parts or part in blocked
        blocked.append(reader.copied(part) if is_taken else part)
    whole = reader.new(sum(part.channels for part in parts), parts[0].level, parts=tuple(blocked))
    for part in blocked:
        part.whole = whole
    return whole


def _is_of_channels(expr: Constant, channels: int) -> bool:
    """Return whether a constant is one number, or one for each channel."""
    shape = (1,) * (RANK - expr.data.ndim) + expr.data.shape
    return len(shape) == RANK and shape[0] == 1 and shape[1] in (1, channels) and shape[2:] == (1, 1)


_RULES: Final[Mapping[str, Rule]] = MappingProxyType(
    {
        **dict.fromkeys(POINTWISE, _pointwise),
        "AveragePool": _pool,
        "Concat": _concat,
        "Conv": _convolution,
        "ConvTranspose": transposed,
        "GlobalAveragePool": lambda reader, call: _global(reader, call, Move.MEAN),
        "GlobalMaxPool": lambda reader, call: _global(reader, call, Move.MAX),
        "MaxPool": _pool,
        "ReduceMean": _reduced,
        "Resize": resized,
    }
)
