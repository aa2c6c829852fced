"""Norms, softmax, reductions, pools and cumulative sums."""

from __future__ import annotations

import itertools
from math import prod
from typing import Final

from benchmarks.sweep.case import Case, Sizes, Value
from benchmarks.sweep.parts import batch_norm, group_norm, layer_norm, rms_norm
from benchmarks.sweep.writer import Layer, LayerWriter

_VECTOR: Final = 16
_LONGEST: Final = 1 << 24
"""Elements of the largest tensor that is drawn."""
_REDUCTIONS: Final = (
    *("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd"),
    *("ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp", "ArgMax"),
)


def draw_shape(sizes: Sizes, low_rank: int = 2, high_rank: int = 4) -> tuple[int, ...]:
    """Draw the shape of a tensor whose elements take at least microseconds to read."""
    rank = sizes.choose(range(low_rank, high_rank + 1))
    elements, shape = sizes.between(1 << 14, _LONGEST), []
    for left in range(rank - 1, 0, -1):
        extent = sizes.between(2, max(2, int(elements ** (1 / (left + 0.5)))))
        shape.append(extent)
        elements = max(1, elements // extent)
    return sizes.shuffled((*shape, max(2, min(elements, 1 << 16))))


def draw_norm(sizes: Sizes) -> dict[str, Value]:
    """Draw a normalisation, some of them of a sum."""
    kind = sizes.choose(("layer", "rms", "instance", "group", "batch"), (4, 2, 1, 2, 1))
    groups = 1
    shape: tuple[int, ...]
    if kind in {"layer", "rms"}:
        width = sizes.choose((64, 96, 128, 192, 256, 384, 512, 768, 1024, 2048, 4096))
        shape = (sizes.batch(), sizes.between(1, 4096), width if sizes.flip(0.7) else sizes.between(8, 4096))
    else:
        groups = sizes.choose((1, 4, 8, 16, 32)) if kind == "group" else 1
        channels = sizes.channels(512)
        shape = (
            sizes.batch(),
            -(-channels // groups) * groups,
            *sizes.image(sizes.choose((1, 2, 3), (1, 8, 1))),
        )
    return {
        "kind": kind,
        "shape": shape,
        "groups": groups,
        "before": sizes.choose(("none", "residual"), (2, 1)),
        "then": sizes.choose(("none", "relu", "silu"), (2, 1, 1)) if kind not in {"layer", "rms"} else "none",
    }


def write_norm(case: Case) -> Layer:
    """Write a normalisation."""
    net, shape, kind = LayerWriter(), case.counts("shape"), case.word("kind")
    x = net.input(shape)
    if case.word("before") == "residual":
        x = net.node("Add", x, net.input(shape))
    match kind:
        case "layer":
            x = layer_norm(net, x)
        case "rms":
            x = rms_norm(net, x)
        case "group":
            x = group_norm(net, x, case.count("groups"))
        case "batch":
            x = batch_norm(net, x)
        case _:
            channels = (shape[1],)
            x = net.node("InstanceNormalization", x, net.positive(channels), net.weight(channels, 1))
    match case.word("then"):
        case "relu":
            x = net.node("Relu", x)
        case "silu":
            x = net.node("Mul", x, net.node("Sigmoid", x))
    return net.finish(x)


def norm_properties(case: Case) -> list[str]:
    """Return what may make a normalisation slow, most specific first."""
    shape = case.counts("shape")
    width = shape[-1] if case.word("kind") in {"layer", "rms"} else shape[1]
    named = {
        case.word("kind"): True,
        "odd width": bool(width % _VECTOR),
        "of a sum": case.word("before") != "none",
        f"then {case.word('then')}": True,
        "batch": shape[0] > 1,
    }
    return [name for name, holds in named.items() if holds]


def draw_softmax(sizes: Sizes) -> dict[str, Value]:
    """Draw a softmax over any axis."""
    shape = draw_shape(sizes)
    axis = len(shape) - 1 if sizes.flip(0.6) else sizes.choose(range(len(shape)))
    return {"op": sizes.choose(("Softmax", "LogSoftmax"), (4, 1)), "shape": shape, "axis": axis}


def write_softmax(case: Case) -> Layer:
    """Write a softmax."""
    net = LayerWriter()
    return net.finish(net.node(case.word("op"), net.input(case.counts("shape")), axis=case.count("axis")))


def draw_scan(sizes: Sizes) -> dict[str, Value]:
    """Draw a cumulative sum over any axis."""
    shape = draw_shape(sizes)
    return {"shape": shape, "axis": sizes.choose(range(len(shape))), "reverse": int(sizes.flip(0.2))}


def write_scan(case: Case) -> Layer:
    """Write a cumulative sum."""
    net, axis = LayerWriter(), case.count("axis")
    x = net.input(case.counts("shape"))
    return net.finish(net.node("CumSum", x, net.constant(axis), reverse=case.count("reverse")))


def axis_properties(case: Case) -> list[str]:
    """Return what may make an operator over one axis slow, most specific first."""
    shape, axis = case.counts("shape"), case.count("axis")
    inner, extent = prod(shape[axis + 1 :]), shape[axis]
    named = {
        "last axis": axis == len(shape) - 1,
        "outer axis, under 16 elements after it": 1 < inner < _VECTOR,
        "outer axis": inner >= _VECTOR,
        "extent under 16": extent < _VECTOR,
        "one row": prod(shape[:axis]) * inner == 1,
        "odd extent": bool(extent % _VECTOR),
        str(case.values.get("op", "sum")): True,
    }
    return [name for name, holds in named.items() if holds]


def draw_reduction(sizes: Sizes) -> dict[str, Value]:
    """Draw a reduction over some axes."""
    shape, operator = draw_shape(sizes), sizes.choose(_REDUCTIONS, (3, 5, 3, 1, 0.5, 1, 2, 1, 1, 1))
    count = (
        1 if operator == "ArgMax" else sizes.choose(range(1, len(shape) + 1), (4, 2, 1, 0.5)[: len(shape)])
    )
    axes = tuple(sorted(sizes.shuffled(range(len(shape)))[:count]))
    return {"op": operator, "shape": shape, "axes": axes, "keep": int(sizes.flip(0.5))}


def write_reduction(case: Case) -> Layer:
    """Write a reduction."""
    net, operator, keep = LayerWriter(), case.word("op"), case.count("keep")
    x, axes = net.input(case.counts("shape")), case.counts("axes")
    if operator == "ArgMax":
        return net.finish(net.node(operator, x, axis=axes[0], keepdims=keep))
    # A product of thousands of numbers around 0 vanishes; it is taken of numbers around 1.
    if operator == "ReduceProd":
        x = net.node("Exp", net.node("Mul", x, net.scalar(1e-3)))
    return net.finish(net.node(operator, x, net.constant(axes), keepdims=keep))


def reduction_properties(case: Case) -> list[str]:
    """Return what may make a reduction slow, most specific first."""
    shape, axes = case.counts("shape"), case.counts("axes")
    last = len(shape) - 1
    named = {
        "all axes": len(axes) == len(shape),
        "last axes": axes == tuple(range(len(shape) - len(axes), len(shape))),
        "first axes": axes == tuple(range(len(axes))),
        "middle axes": last not in axes and 0 not in axes,
        "axes apart": any(after - before > 1 for before, after in itertools.pairwise(axes)),
        "last extent under 16": shape[last] < _VECTOR,
        case.word("op"): True,
    }
    return [name for name, holds in named.items() if holds]


def draw_pool(sizes: Sizes) -> dict[str, Value]:
    """Draw a pool of one to three dimensions."""
    rank = sizes.choose((1, 2, 3), (1, 8, 1))
    operator = sizes.choose(("MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"), (4, 3, 2, 0.5))
    window = sizes.choose((2, 3, 5, 7, 13), (4, 4, 1, 0.5, 0.5))
    stride = sizes.choose((1, window, 2), (1, 2, 2))
    before = sizes.choose((0, window // 2), (1, 1))
    after = before if sizes.flip(0.85) else min(window - 1, before + 1)
    return {
        "op": operator,
        "n": sizes.batch(),
        "c": sizes.channels(),
        "image": sizes.image(rank),
        "window": window,
        "stride": stride,
        "pads": (before,) * rank + (after,) * rank,
        "ceil": int(sizes.flip(0.1)),
    }


def write_pool(case: Case) -> Layer:
    """Write a pool."""
    net, operator, image = LayerWriter(), case.word("op"), case.counts("image")
    x = net.input((case.count("n"), case.count("c"), *image))
    if operator.startswith("Global"):
        return net.finish(net.node(operator, x))
    return net.finish(
        net.node(
            operator,
            x,
            kernel_shape=(case.count("window"),) * len(image),
            strides=(case.count("stride"),) * len(image),
            pads=case.counts("pads"),
            ceil_mode=case.count("ceil"),
        )
    )


def pool_properties(case: Case) -> list[str]:
    """Return what may make a pool slow, most specific first."""
    rank, pads = len(case.counts("image")), case.counts("pads")
    is_global = case.word("op").startswith("Global")
    named = {
        f"{case.word('op')} of {rank} dimensions": True,
        "stride 1": not is_global and case.count("stride") == 1,
        "large window": not is_global and case.count("window") > 3,
        "asymmetric padding": not is_global and pads[:rank] != pads[rank:],
        "channels no multiple of 16": bool(case.count("c") % _VECTOR),
        "batch": case.count("n") > 1,
    }
    return [name for name, holds in named.items() if holds]
