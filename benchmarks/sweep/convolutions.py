"""Convolutions of one to three dimensions: dense, grouped, depthwise, dilated, transposed, with epilogues."""

from __future__ import annotations

from math import prod
from typing import Final

from benchmarks.sweep.case import Case, Sizes, Value
from benchmarks.sweep.parts import activation, batch_norm, squeeze_excite
from benchmarks.sweep.writer import Layer, LayerWriter

_EPILOGUES: Final = {
    "none": 0.1,
    "bias": 0.15,
    "relu": 0.25,
    "silu": 0.12,
    "relu6": 0.03,
    "hardswish": 0.04,
    "leaky": 0.04,
    "gelu": 0.03,
    "norm-relu": 0.05,
    "residual": 0.05,
    "residual-relu": 0.08,
    "se": 0.06,
}
"""Relative frequencies of what follows a convolution."""
_RANKS: Final = (0.16, 0.7, 0.14)
"""Relative frequencies of convolutions of one, two and three dimensions."""
_DILATIONS: Final = {2: 5, 3: 1, 4: 3, 6: 1, 8: 1, 12: 1, 18: 1, 24: 1, 36: 1}
"""Relative frequencies of dilations."""
_WINDOWS: Final = {
    (3, 3): 7,
    (5, 5): 1.5,
    (7, 7): 1,
    (2, 2): 0.5,
    (4, 4): 0.7,
    (1, 7): 0.5,
    (7, 1): 0.5,
    (1, 3): 0.4,
    (3, 1): 0.4,
}
"""Relative frequencies of windows of two dimensions."""
_VECTOR: Final = 16
"""Channels of a full vector of AVX-512."""
_FULL_WINDOW: Final = 0.7
"""Share of window taps that read the image, averaged over the results, below which padding is most of it."""


def draw_pointwise(sizes: Sizes) -> dict[str, Value]:
    """Draw a convolution with a window of one pixel."""
    return _draw(sizes, "pointwise")


def draw_dense(sizes: Sizes) -> dict[str, Value]:
    """Draw a convolution of all channels with each other."""
    return _draw(sizes, "dense")


def draw_grouped(sizes: Sizes) -> dict[str, Value]:
    """Draw a convolution in groups of several channels."""
    return _draw(sizes, "grouped")


def draw_depthwise(sizes: Sizes) -> dict[str, Value]:
    """Draw a convolution with one input channel for each group."""
    return _draw(sizes, "depthwise")


def draw_dilated(sizes: Sizes) -> dict[str, Value]:
    """Draw a convolution whose window has holes."""
    return _draw(sizes, "dilated")


def draw_transposed(sizes: Sizes) -> dict[str, Value]:
    """Draw a transposed convolution."""
    return _draw(sizes, "transposed")


def _draw(sizes: Sizes, kind: str) -> dict[str, Value]:
    rank = sizes.choose((1, 2, 3), _RANKS)
    dilation = sizes.choose(tuple(_DILATIONS), tuple(_DILATIONS.values())) if kind == "dilated" else 1
    stride = _draw_stride(sizes, kind)
    window = (1,) * rank if kind == "pointwise" else _draw_window(sizes, rank, kind)
    channels, filters, groups = _draw_channels(sizes, kind)
    image = sizes.image(rank)
    return {
        "n": sizes.batch(),
        "c": channels,
        "k": filters,
        "image": image,
        "window": window,
        "stride": stride,
        "dilation": dilation,
        "pads": _draw_pads(sizes, window, dilation, stride, kind),
        "groups": groups,
        "then": sizes.choose(tuple(_EPILOGUES), tuple(_EPILOGUES.values())),
    }


def _draw_stride(sizes: Sizes, kind: str) -> int:
    match kind:
        case "transposed":
            return sizes.choose((1, 2, 3, 4), (1, 7, 1, 1))
        case "dilated":
            return sizes.choose((1, 2), (9, 1))
        case "pointwise":
            return sizes.choose((1, 2), (8, 2))
        case _:
            return sizes.choose((1, 2, 3, 4), (13, 5, 1, 1))


def _draw_window(sizes: Sizes, rank: int, kind: str) -> tuple[int, ...]:
    if rank == 1:
        return (sizes.choose((2, 3, 4, 5, 7, 9, 15, 25, 31), (1, 6, 1, 3, 2, 1, 1, 1, 1)),)
    if rank == 3:
        return sizes.choose(((3, 3, 3), (1, 3, 3), (3, 1, 1), (5, 5, 5), (2, 2, 2)), (5, 2, 2, 1, 1))
    if kind == "depthwise":
        side = sizes.choose((3, 5, 7, 9), (5, 3, 2, 0.5))
        return (side, side)
    return sizes.choose(tuple(_WINDOWS), tuple(_WINDOWS.values()))


def _draw_channels(sizes: Sizes, kind: str) -> tuple[int, int, int]:
    """Return the numbers of input channels, of filters, and of groups."""
    channels = sizes.choose((1, 3, 4)) if kind == "dense" and sizes.flip(0.1) else sizes.channels()
    if kind == "depthwise":
        return channels, channels * sizes.choose((1, 2), (9, 1)), channels
    if kind == "grouped":
        groups = sizes.choose((2, 3, 4, 8, 16, 32, 64))
        return groups * sizes.between(2, 64), groups * sizes.between(2, 64), groups
    if kind in {"dilated", "transposed"} and sizes.flip(0.25):
        return channels, channels, channels
    return channels, channels if sizes.flip(0.4) else sizes.channels(), 1


def _draw_pads(
    sizes: Sizes, window: tuple[int, ...], dilation: int, stride: int, kind: str
) -> tuple[int, ...]:
    reach = [dilation * (extent - 1) for extent in window]
    if kind == "transposed":
        overlap = [max(0, extent - stride) for extent in window]
        return (*(item // 2 for item in overlap), *(item - item // 2 for item in overlap))
    match sizes.choose(("same", "valid", "same upper", "causal", "any"), (13, 2, 2, 1, 1)):
        case "same":
            return tuple(item // 2 for item in reach) * 2
        case "valid":
            return (0,) * (2 * len(reach))
        case "same upper":
            missing = [max(0, item + 1 - stride) for item in reach]
            return (*(item // 2 for item in missing), *(item - item // 2 for item in missing))
        case "causal":
            return (reach[0], *(item // 2 for item in reach[1:]), 0, *(item // 2 for item in reach[1:]))
        case _:
            return tuple(sizes.between(1, 1 + item) - 1 for item in reach * 2)


def write_convolution(case: Case) -> Layer:
    """Write a convolution of any family and what follows it.

    Raises:
        ValueError: The padded image does not hold the window: onnx and engines disagree on what results then.
    """
    if case.family != "transposed" and not _holds_window(case):
        raise ValueError("the image does not hold the window")
    net, then = LayerWriter(), case.word("then")
    channels, filters, groups = case.count("c"), case.count("k"), case.count("groups")
    image, window = case.counts("image"), case.counts("window")
    x = net.input((case.count("n"), channels, *image))
    attributes = {
        "kernel_shape": window,
        "strides": (case.count("stride"),) * len(image),
        "dilations": (case.count("dilation"),) * len(image),
        "pads": case.counts("pads"),
        "group": groups,
    }
    bias = [net.weight((filters,), 1)] if then not in {"none", "norm-relu"} else []
    if case.family == "transposed":
        weight = net.weight((channels, filters // groups, *window), channels // groups)
        result = net.node("ConvTranspose", x, weight, *bias, **attributes)
    else:
        weight = net.weight((filters, channels // groups, *window))
        result = net.node("Conv", x, weight, *bias, **attributes)
    return net.finish(_write_epilogue(net, result, then))


def _write_epilogue(net: LayerWriter, x: str, then: str) -> str:
    match then:
        case "none" | "bias":
            return x
        case "norm-relu":
            return net.node("Relu", batch_norm(net, x))
        case "residual" | "residual-relu":
            total = net.node("Add", x, net.input(net.shape(x)))
            return total if then == "residual" else net.node("Relu", total)
        case "se":
            return squeeze_excite(net, activation(net, x, "silu"), max(4, net.shape(x)[1] // 16))
        case _:
            return activation(net, x, then)


def properties(case: Case) -> list[str]:
    """Return what may make a convolution slow, most specific first."""
    channels, filters, groups = case.count("c"), case.count("k"), case.count("groups")
    image, pads, rank = case.counts("image"), case.counts("pads"), len(case.counts("image"))
    width, taps = channels // groups, prod(case.counts("window"))
    is_depthwise = groups == channels
    in_groups = groups > 1 and not is_depthwise
    named = {
        "window reads mostly padding": _share_read(case) < _FULL_WINDOW,
        "depthwise with dilation": is_depthwise and case.family == "dilated",
        "depthwise with several filters a channel": is_depthwise and filters > channels,
        "depthwise transposed": is_depthwise and case.family == "transposed",
        "groups of under 16 channels": in_groups and width < _VECTOR,
        "groups of no multiple of 16 channels": in_groups and width > _VECTOR and bool(width % _VECTOR),
        "1-D": rank == 1,
        "3-D": rank == 3,
        "few input channels": groups == 1 and channels < _VECTOR,
        "few filters": groups == 1 and filters < _VECTOR,
        "dilation": case.count("dilation") > 1,
        "stride": case.count("stride") > 1 and case.family != "transposed",
        "stride over 2": case.count("stride") > 2,
        "large window": taps > 9,
        "even window": any(extent % 2 == 0 for extent in case.counts("window")),
        "asymmetric padding": pads[:rank] != pads[rank:],
        "channels no multiple of 16": bool(channels % _VECTOR or filters % _VECTOR),
        "image of at most 14": max(image) <= 14,
        "batch": case.count("n") > 1,
        f"then {case.word('then')}": True,
    }
    return [name for name, holds in named.items() if holds]


def _holds_window(case: Case) -> bool:
    image, pads, dilation = case.counts("image"), case.counts("pads"), case.count("dilation")
    padded = [extent + pads[axis] + pads[axis + len(image)] for axis, extent in enumerate(image)]
    return all(
        extent > dilation * (taps - 1) for extent, taps in zip(padded, case.counts("window"), strict=True)
    )


def _share_read(case: Case) -> float:
    """Return the share of the window's taps that read the image, on average over the results."""
    if case.family == "transposed":
        return 1.0
    image, share = case.counts("image"), 1.0
    pads, dilation, stride = case.counts("pads"), case.count("dilation"), case.count("stride")
    for axis, (extent, taps) in enumerate(zip(image, case.counts("window"), strict=True)):
        before, after = pads[axis], pads[axis + len(image)]
        results = (extent + before + after - dilation * (taps - 1) - 1) // stride + 1
        reads = sum(
            0 <= at * stride + tap * dilation - before < extent
            for tap in range(taps)
            for at in range(results)
        )
        share *= reads / (results * taps)
    return share
