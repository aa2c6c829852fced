"""Blocks of transformers, speech networks and recommenders, at the widths that papers and libraries have."""

from __future__ import annotations

from typing import Final

import numpy as np
from benchmarks.sweep.parts import (
    activation,
    attention,
    causal_mask,
    convolution,
    join_heads,
    layer_norm,
    linear,
    repeat_heads,
    rms_norm,
    split_heads,
)
from benchmarks.sweep.vision_blocks import Stages, Write
from benchmarks.sweep.writer import LayerWriter


def _heads(net: LayerWriter, x: str) -> int:
    width = net.shape(x)[-1]
    return width // (64 if width % 64 == 0 else 32)


def _self_attention(net: LayerWriter, x: str, mask: str | None = None) -> str:
    width, heads = net.shape(x)[-1], _heads(net, x)
    query, key, value = (split_heads(net, linear(net, x, width), heads) for _ in range(3))
    return linear(net, join_heads(net, attention(net, query, key, value, mask)), width)


def _joint_attention(net: LayerWriter, x: str, heads: int, mask: str | None = None) -> str:
    """Add an attention whose queries, keys and values come from one product."""
    batch, length, width = net.shape(x)
    joined = net.reshape(linear(net, x, 3 * width), batch, length, 3, heads, width // heads)
    turned = net.node("Transpose", joined, perm=[2, 0, 3, 1, 4])
    query, key, value = (net.node("Gather", turned, net.constant(at), axis=0) for at in range(3))
    return linear(net, join_heads(net, attention(net, query, key, value, mask)), width)


def _feed_forward(net: LayerWriter, x: str, act: str = "gelu") -> str:
    return linear(net, linear(net, x, 4 * net.shape(x)[-1], act), net.shape(x)[-1])


def _bert(net: LayerWriter, x: str) -> str:
    batch, length, _ = net.shape(x)
    mask = net.input((batch, 1, 1, length))
    x = layer_norm(net, net.node("Add", x, _self_attention(net, x, mask)))
    return layer_norm(net, net.node("Add", x, _feed_forward(net, x)))


def _vit(net: LayerWriter, x: str) -> str:
    x = net.node("Add", x, _joint_attention(net, layer_norm(net, x), _heads(net, x)))
    return net.node("Add", x, _feed_forward(net, layer_norm(net, x)))


def _gpt2(net: LayerWriter, x: str) -> str:
    mask = causal_mask(net, net.shape(x)[1], net.shape(x)[1])
    x = net.node("Add", x, _joint_attention(net, layer_norm(net, x), _heads(net, x), mask))
    inner = linear(net, layer_norm(net, x), 4 * net.shape(x)[-1])
    cube = net.node("Mul", net.node("Pow", inner, net.scalar(3)), net.scalar(0.044715))
    gate = net.node("Tanh", net.node("Mul", net.node("Add", inner, cube), net.scalar(0.7978846)))
    gated = net.node("Mul", net.node("Mul", inner, net.scalar(0.5)), net.node("Add", gate, net.scalar(1)))
    return net.node("Add", x, linear(net, gated, net.shape(x)[-1]))


def _rotate(net: LayerWriter, x: str) -> str:
    length, width = net.shape(x)[2:]
    angles = np.outer(np.arange(length), 1e4 ** (-np.arange(width // 2) / (width // 2)))
    both = np.concatenate([angles, angles], axis=1)[None, None]
    first, second = net.nodes(2, "Split", x, axis=-1, num_outputs=2)
    turned = net.node("Concat", net.node("Neg", second), first, axis=-1)
    cosines, sines = net.constant(np.cos(both), np.float32), net.constant(np.sin(both), np.float32)
    return net.node("Add", net.node("Mul", x, cosines), net.node("Mul", turned, sines))


def _llama(net: LayerWriter, x: str) -> str:
    width, heads = net.shape(x)[-1], _heads(net, x)
    kept, head, length = max(1, heads // 4), width // heads, net.shape(x)[1]
    ready = rms_norm(net, x)
    query = _rotate(net, split_heads(net, linear(net, ready, width, bias=False), heads))
    key = _rotate(net, split_heads(net, linear(net, ready, kept * head, bias=False), kept))
    value = split_heads(net, linear(net, ready, kept * head, bias=False), kept)
    key, value = (repeat_heads(net, part, heads // kept) for part in (key, value))
    mixed = join_heads(net, attention(net, query, key, value, causal_mask(net, length, length)))
    x = net.node("Add", x, linear(net, mixed, width, bias=False))
    ready = rms_norm(net, x)
    gate = linear(net, ready, 8 * width // 3, "silu", bias=False)
    inner = net.node("Mul", gate, linear(net, ready, 8 * width // 3, bias=False))
    return net.node("Add", x, linear(net, inner, width, bias=False))


def _decoder_step(net: LayerWriter, x: str) -> str:
    """Write a step of a decoder with 128 cached positions."""
    batch, width, heads = net.shape(x)[0], net.shape(x)[-1], _heads(net, x)
    ready = layer_norm(net, x)
    query, *new = (split_heads(net, linear(net, ready, width), heads) for _ in range(3))
    cached = [net.input((batch, heads, 128, width // heads)) for _ in range(2)]
    key, value = (net.node("Concat", old, step, axis=2) for old, step in zip(cached, new, strict=True))
    x = net.node("Add", x, linear(net, join_heads(net, attention(net, query, key, value)), width))
    return net.node("Add", x, _feed_forward(net, layer_norm(net, x)))


def _t5(net: LayerWriter, x: str) -> str:
    width, heads, length = net.shape(x)[-1], _heads(net, x), net.shape(x)[1]
    ready = rms_norm(net, x)
    query, key, value = (split_heads(net, linear(net, ready, width, bias=False), heads) for _ in range(3))
    bias = net.weight((1, heads, length, length), 1)
    mixed = join_heads(net, attention(net, query, key, value, bias))
    x = net.node("Add", x, linear(net, mixed, width, bias=False))
    inner = linear(net, rms_norm(net, x), 4 * width, "relu", bias=False)
    return net.node("Add", x, linear(net, inner, width, bias=False))


def _swin(net: LayerWriter, x: str) -> str:
    batch, height, width, channels = net.shape(x)
    rows, columns = height // 7, width // 7
    parted = net.reshape(layer_norm(net, x), batch, rows, 7, columns, 7, channels)
    windows = net.reshape(net.node("Transpose", parted, perm=[0, 1, 3, 2, 4, 5]), -1, 49, channels)
    mixed = _joint_attention(net, windows, channels // 32, net.weight((1, channels // 32, 49, 49), 1))
    parted = net.reshape(mixed, batch, rows, columns, 7, 7, channels)
    joined = net.reshape(net.node("Transpose", parted, perm=[0, 1, 3, 2, 4, 5]), *net.shape(x))
    x = net.node("Add", x, joined)
    return net.node("Add", x, _feed_forward(net, layer_norm(net, x)))


def _mixer(net: LayerWriter, x: str) -> str:
    tokens = net.shape(x)[1]
    turned = net.node("Transpose", layer_norm(net, x), perm=[0, 2, 1])
    mixed = linear(net, linear(net, turned, 2 * tokens, "gelu"), tokens)
    x = net.node("Add", x, net.node("Transpose", mixed, perm=[0, 2, 1]))
    return net.node("Add", x, _feed_forward(net, layer_norm(net, x)))


def _segformer(net: LayerWriter, x: str) -> str:
    batch, length, width = net.shape(x)
    side = round(length**0.5)
    inner = linear(net, layer_norm(net, x), 4 * width)
    image = net.reshape(net.node("Transpose", inner, perm=[0, 2, 1]), batch, 4 * width, side, side)
    mixed = net.reshape(convolution(net, image, 4 * width, 3, groups=4 * width), batch, 4 * width, length)
    rows = activation(net, net.node("Transpose", mixed, perm=[0, 2, 1]), "gelu")
    return net.node("Add", x, linear(net, rows, width))


def _conformer(net: LayerWriter, x: str) -> str:
    width = net.shape(x)[-1]
    turned = net.node("Transpose", layer_norm(net, x), perm=[0, 2, 1])
    first, second = net.nodes(2, "Split", convolution(net, turned, 2 * width), axis=1, num_outputs=2)
    gated = net.node("Mul", first, net.node("Sigmoid", second))
    mixed = convolution(net, convolution(net, gated, width, 31, groups=width, act="silu"), width)
    return net.node("Add", x, net.node("Transpose", mixed, perm=[0, 2, 1]))


def _wavenet(net: LayerWriter, x: str) -> str:
    width = net.shape(x)[1]
    for dilation in (1, 2, 4, 8):
        inner = convolution(net, x, 2 * width, 2, dilation=dilation, pads=(dilation, 0))
        first, second = net.nodes(2, "Split", inner, axis=1, num_outputs=2)
        gated = net.node("Mul", net.node("Tanh", first), net.node("Sigmoid", second))
        x = net.node("Add", x, convolution(net, gated, width))
    return x


def _vocoder(net: LayerWriter, x: str) -> str:
    for dilation in (1, 3, 5):
        inner = convolution(
            net, activation(net, x, "leaky"), net.shape(x)[1], 3, dilation=dilation, act="leaky"
        )
        x = net.node("Add", x, convolution(net, inner, net.shape(x)[1], 3))
    return x


def _temporal(net: LayerWriter, x: str) -> str:
    for dilation in (1, 4):
        pads = (2 * dilation, 0)
        x = net.node(
            "Add", x, convolution(net, x, net.shape(x)[1], 3, dilation=dilation, pads=pads, act="relu")
        )
    return x


def _perceptron(net: LayerWriter, x: str) -> str:
    for width in (512, 256, 128):
        x = linear(net, x, width, "relu")
    return linear(net, x, 1, "sigmoid")


def _interactions(net: LayerWriter, x: str) -> str:
    """Write the bottom of a recommender: dense features, rows of tables, and their products in pairs."""
    batch = net.shape(x)[0]
    rows = [linear(net, linear(net, x, 256, "relu"), 64, "relu")]
    for _ in range(8):
        chosen = net.indices((batch,), 0, 10_000)
        rows.append(net.node("Gather", net.weight((10_000, 64), 64), chosen, axis=0))
    stacked = net.node("Concat", *[net.reshape(row, batch, 1, 64) for row in rows], axis=1)
    pairs = net.node("MatMul", stacked, net.node("Transpose", stacked, perm=[0, 2, 1]))
    return _perceptron(net, net.node("Concat", rows[0], net.reshape(pairs, batch, 81), axis=1))


SEQUENCE_BLOCKS: Final[dict[str, tuple[Write, Stages]]] = {
    "bert": (_bert, ((128, 768), (128, 384), (384, 256), (64, 1024))),
    "vit": (_vit, ((197, 768), (197, 384), (197, 192), (257, 1024))),
    "gpt2": (_gpt2, ((64, 768), (256, 768), (16, 1024))),
    "llama": (_llama, ((64, 512), (128, 768), (16, 2048))),
    "decoder-step": (_decoder_step, ((1, 512), (1, 768), (1, 1024))),
    "t5": (_t5, ((64, 512), (128, 768))),
    "swin": (_swin, ((56, 56, 96), (28, 28, 192), (14, 14, 384), (7, 7, 768))),
    "mixer": (_mixer, ((196, 512), (196, 768), (49, 512))),
    "segformer": (_segformer, ((3136, 32), (784, 64), (196, 160), (49, 256))),
    "conformer": (_conformer, ((200, 144), (200, 256), (400, 512))),
    "wavenet": (_wavenet, ((32, 4000), (64, 8000), (128, 1000))),
    "vocoder": (_vocoder, ((128, 2000), (64, 8000), (256, 500))),
    "temporal": (_temporal, ((64, 1000), (150, 400), (25, 4000))),
    "perceptron": (_perceptron, ((1024,), (479,), (3000,))),
    "interactions": (_interactions, ((13,),)),
}
