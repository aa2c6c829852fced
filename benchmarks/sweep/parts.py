"""What layers and blocks consist of, written as exporters of PyTorch write it."""

from __future__ import annotations

from math import sqrt
from typing import Final

import numpy as np
from benchmarks.sweep.writer import LayerWriter

_HALF_ROOT: Final = sqrt(0.5)
_LOWEST: Final = float(np.finfo(np.float32).min)


def activation(net: LayerWriter, x: str, name: str) -> str:
    """Add an activation: relu, relu6, silu, hardswish, leaky, gelu, sigmoid, tanh or none."""
    match name:
        case "none":
            return x
        case "relu6":
            return net.node("Clip", x, net.scalar(0), net.scalar(6))
        case "silu":
            return net.node("Mul", x, net.node("Sigmoid", x))
        case "leaky":
            return net.node("LeakyRelu", x, alpha=0.1)
        case "gelu":
            scaled = net.node("Mul", x, net.scalar(_HALF_ROOT))
            gate = net.node("Add", net.node("Erf", scaled), net.scalar(1))
            return net.node("Mul", net.node("Mul", x, gate), net.scalar(0.5))
        case _:
            return net.node({"hardswish": "HardSwish"}.get(name, name.capitalize()), x)


def convolution(
    net: LayerWriter,
    x: str,
    filters: int,
    window: int | tuple[int, ...] = 1,
    *,
    stride: int = 1,
    dilation: int = 1,
    groups: int = 1,
    pads: tuple[int, ...] | None = None,
    act: str = "none",
    bias: bool = True,
) -> str:
    """Add a convolution and an activation.

    Args:
        net: Writer of the graph.
        x: Input.
        filters: Number of output channels.
        window: Extents of the window, or the extent along all dimensions.
        stride: Stride along all dimensions.
        dilation: Dilation along all dimensions.
        groups: Number of groups.
        pads: Padding, as of ONNX; None for half of the window on each side.
        act: Name of the activation.
        bias: Whether a bias is added.
    """
    _, channels, *image = net.shape(x)
    extents = (window,) * len(image) if isinstance(window, int) else window
    if pads is None:
        pads = tuple(dilation * (extent - 1) // 2 for extent in extents) * 2
    weights = [net.weight((filters, channels // groups, *extents))]
    weights += [net.weight((filters,), 1)] * bias
    result = net.node(
        "Conv",
        x,
        *weights,
        kernel_shape=extents,
        strides=(stride,) * len(image),
        dilations=(dilation,) * len(image),
        group=groups,
        pads=pads,
    )
    return activation(net, result, act)


def batch_norm(net: LayerWriter, x: str) -> str:
    """Add a batch normalisation over the channels."""
    shape = (net.shape(x)[1],)
    scale, shift, mean = net.positive(shape), net.weight(shape, 1), net.weight(shape, 1)
    return net.node("BatchNormalization", x, scale, shift, mean, net.positive(shape))


def squeeze_excite(net: LayerWriter, x: str, hidden: int, act: str = "relu", gate: str = "sigmoid") -> str:
    """Add a squeeze-and-excitation with some hidden channels."""
    pooled = net.node("GlobalAveragePool", x)
    narrow = convolution(net, pooled, hidden, act=act)
    return net.node("Mul", x, convolution(net, narrow, net.shape(x)[1], act=gate))


def upsample(net: LayerWriter, x: str, factor: int = 2) -> str:
    """Add an upsampling to the nearest pixel."""
    scales = net.constant((1.0, 1.0, *(float(factor),) * (len(net.shape(x)) - 2)), np.float32)
    return net.node(
        "Resize",
        x,
        "",
        scales,
        mode="nearest",
        nearest_mode="floor",
        coordinate_transformation_mode="asymmetric",
    )


def linear(net: LayerWriter, x: str, width: int, act: str = "none", *, bias: bool = True) -> str:
    """Add a product with a constant matrix, a bias and an activation."""
    product = net.node("MatMul", x, net.weight((net.shape(x)[-1], width), net.shape(x)[-1]))
    return activation(net, net.node("Add", product, net.weight((width,), 1)) if bias else product, act)


def layer_norm(net: LayerWriter, x: str) -> str:
    """Add a layer normalisation over the last dimension."""
    shape = (net.shape(x)[-1],)
    return net.node("LayerNormalization", x, net.positive(shape), net.weight(shape, 1), axis=-1)


def rms_norm(net: LayerWriter, x: str) -> str:
    """Add a normalisation by the root of the mean square over the last dimension."""
    square = net.node("Pow", x, net.scalar(2))
    mean = net.node("ReduceMean", square, net.constant([-1]), keepdims=1)
    root = net.node("Sqrt", net.node("Add", mean, net.scalar(1e-6)))
    return net.node("Mul", net.positive((net.shape(x)[-1],)), net.node("Div", x, root))


def group_norm(net: LayerWriter, x: str, groups: int) -> str:
    """Add a normalisation over groups of channels."""
    batch, channels, *image = net.shape(x)
    grouped = net.reshape(x, batch, groups, -1)
    ones, zeros = net.constant(np.ones(groups), np.float32), net.constant(np.zeros(groups), np.float32)
    normed = net.reshape(net.node("InstanceNormalization", grouped, ones, zeros), *net.shape(x))
    shape = (channels, *(1,) * len(image))
    return net.node("Add", net.node("Mul", normed, net.positive(shape)), net.weight(shape, 1))


def split_heads(net: LayerWriter, x: str, heads: int) -> str:
    """Return a (batch, length, width) tensor as (batch, heads, length, width of a head)."""
    batch, length, width = net.shape(x)
    return net.node("Transpose", net.reshape(x, batch, length, heads, width // heads), perm=[0, 2, 1, 3])


def join_heads(net: LayerWriter, x: str) -> str:
    """Return heads to the width: (batch, length, width)."""
    batch, heads, length, width = net.shape(x)
    return net.reshape(net.node("Transpose", x, perm=[0, 2, 1, 3]), batch, length, heads * width)


def repeat_heads(net: LayerWriter, x: str, times: int) -> str:
    """Repeat each head of grouped keys or values."""
    if times == 1:
        return x
    batch, heads, length, width = net.shape(x)
    wide = net.node(
        "Expand", net.reshape(x, batch, heads, 1, length, width), net.constant((1, 1, times, 1, 1))
    )
    return net.reshape(wide, batch, heads * times, length, width)


def attention(net: LayerWriter, query: str, key: str, value: str, mask: str | None = None) -> str:
    """Add an attention: products of queries and keys, mask, softmax, and means of the values."""
    scaled = net.node("Mul", query, net.scalar(1 / sqrt(net.shape(query)[-1])))
    scores = net.node("MatMul", scaled, net.node("Transpose", key, perm=[0, 1, 3, 2]))
    masked = net.node("Add", scores, mask) if mask else scores
    return net.node("MatMul", net.node("Softmax", masked, axis=-1), value)


def causal_mask(net: LayerWriter, queries: int, keys: int) -> str:
    """Add a constant mask under which a query sees the keys up to its own position."""
    later = np.triu(np.ones((queries, keys)), keys - queries + 1)
    return net.constant(np.where(later, _LOWEST, 0)[None, None], np.float32)
