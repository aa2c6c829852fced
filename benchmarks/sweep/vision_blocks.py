"""Blocks of convolutional networks, at the widths and sides that their papers and libraries have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from benchmarks.sweep.parts import (
    activation,
    convolution,
    group_norm,
    layer_norm,
    linear,
    squeeze_excite,
    upsample,
)
from benchmarks.sweep.writer import LayerWriter

Write = Callable[[LayerWriter, str], str]
Stages = tuple[tuple[int, ...], ...]
"""Shapes of the inputs behind the batch, of which one is drawn."""


def _image(*stages: tuple[int, int]) -> Stages:
    return tuple((channels, side, side) for channels, side in stages)


def _width(net: LayerWriter, x: str) -> int:
    return net.shape(x)[1]


def _add(net: LayerWriter, x: str, y: str, act: str = "none") -> str:
    return activation(net, net.node("Add", x, y), act)


def _concat(net: LayerWriter, *parts: str) -> str:
    return net.node("Concat", *parts, axis=1)


def _halves(net: LayerWriter, x: str) -> tuple[str, str]:
    first, second = net.nodes(2, "Split", x, axis=1, num_outputs=2)
    return first, second


def _max_pool(net: LayerWriter, x: str, window: int, stride: int = 1) -> str:
    pads = [window // 2] * 4
    return net.node("MaxPool", x, kernel_shape=[window] * 2, strides=[stride] * 2, pads=pads)


def _resnet_basic(net: LayerWriter, x: str) -> str:
    inner = convolution(net, x, _width(net, x), 3, act="relu")
    return _add(net, convolution(net, inner, _width(net, x), 3), x, "relu")


def _resnet_bottleneck(net: LayerWriter, x: str) -> str:
    inner = convolution(net, x, _width(net, x) // 4, act="relu")
    inner = convolution(net, inner, _width(net, x) // 4, 3, act="relu")
    return _add(net, convolution(net, inner, _width(net, x)), x, "relu")


def _resnet_down(net: LayerWriter, x: str) -> str:
    width = _width(net, x)
    inner = convolution(net, convolution(net, x, width // 2, act="relu"), width // 2, 3, stride=2, act="relu")
    return _add(net, convolution(net, inner, 2 * width), convolution(net, x, 2 * width, stride=2), "relu")


def _resnext(net: LayerWriter, x: str) -> str:
    inner = convolution(net, x, _width(net, x) // 2, act="relu")
    inner = convolution(net, inner, _width(net, x) // 2, 3, groups=32, act="relu")
    return _add(net, convolution(net, inner, _width(net, x)), x, "relu")


def _regnet(net: LayerWriter, x: str) -> str:
    width = _width(net, x)
    inner = convolution(net, x, width, act="relu")
    inner = convolution(net, inner, width, 3, groups=width // 24, act="relu")
    inner = squeeze_excite(net, inner, width // 4)
    return _add(net, convolution(net, inner, width), x, "relu")


def _res2net(net: LayerWriter, x: str) -> str:
    width = _width(net, x)
    parts = net.nodes(4, "Split", convolution(net, x, 104, act="relu"), axis=1, num_outputs=4)
    results = [parts[0]]
    for part in parts[1:]:
        joined = part if len(results) == 1 else net.node("Add", part, results[-1])
        results.append(convolution(net, joined, 26, 3, act="relu"))
    return _add(net, convolution(net, _concat(net, *results), width), x, "relu")


def _resnest(net: LayerWriter, x: str) -> str:
    width = _width(net, x) // 4
    inner = convolution(net, convolution(net, x, width, act="relu"), 2 * width, 3, groups=2, act="relu")
    first, second = _halves(net, inner)
    pooled = net.node("GlobalAveragePool", net.node("Add", first, second))
    gates = convolution(net, convolution(net, pooled, max(32, width // 2), act="relu"), 2 * width)
    weights = net.node("Softmax", net.reshape(gates, net.shape(x)[0], 2, width, 1, 1), axis=1)
    stacked = net.reshape(inner, net.shape(x)[0], 2, width, *net.shape(x)[2:])
    mixed = net.node("ReduceSum", net.node("Mul", stacked, weights), net.constant([1]), keepdims=0)
    return _add(net, convolution(net, mixed, 4 * width), x, "relu")


def _densenet(net: LayerWriter, x: str) -> str:
    for _ in range(2):
        scale, shift = net.positive((_width(net, x), 1, 1)), net.weight((_width(net, x), 1, 1))
        ready = net.node("Relu", net.node("Add", net.node("Mul", x, scale), shift))
        x = _concat(net, x, convolution(net, convolution(net, ready, 128, act="relu"), 32, 3))
    return x


def _inception(net: LayerWriter, x: str) -> str:
    pointwise = convolution(net, x, 64, act="relu")
    five = convolution(net, convolution(net, x, 48, act="relu"), 64, 5, act="relu")
    three = convolution(net, convolution(net, x, 64, act="relu"), 96, 3, act="relu")
    three = convolution(net, three, 96, 3, act="relu")
    pooled = net.node("AveragePool", x, kernel_shape=[3, 3], pads=[1] * 4, count_include_pad=1)
    return _concat(net, pointwise, five, three, convolution(net, pooled, 32, act="relu"))


def _inception_long(net: LayerWriter, x: str) -> str:
    pointwise = convolution(net, x, 192, act="relu")
    seven = convolution(net, convolution(net, x, 160, act="relu"), 160, (1, 7), act="relu")
    seven = convolution(net, seven, 192, (7, 1), act="relu")
    return _concat(net, pointwise, seven)


def _mobilenet_v1(net: LayerWriter, x: str) -> str:
    inner = convolution(net, x, _width(net, x), 3, groups=_width(net, x), act="relu")
    return convolution(net, inner, 2 * _width(net, x), act="relu")


def _inverted_residual(
    net: LayerWriter, x: str, act: str, window: int = 3, factor: int = 6, squeeze: int = 0
) -> str:
    width = _width(net, x)
    inner = convolution(net, x, factor * width, act=act)
    inner = convolution(net, inner, factor * width, window, groups=factor * width, act=act)
    if squeeze:
        inner = squeeze_excite(net, inner, max(4, width // squeeze), "silu" if act == "silu" else "relu")
    return _add(net, convolution(net, inner, width), x)


def _mobilenet_v2(net: LayerWriter, x: str) -> str:
    return _inverted_residual(net, x, "relu6")


def _mobilenet_v3(net: LayerWriter, x: str) -> str:
    return _inverted_residual(net, x, "hardswish", 5, 4, 1)


def _efficientnet(net: LayerWriter, x: str) -> str:
    return _inverted_residual(net, x, "silu", 5, 6, 4)


def _efficientnet_v2(net: LayerWriter, x: str) -> str:
    inner = convolution(net, x, 4 * _width(net, x), 3, act="silu")
    return _add(net, convolution(net, inner, _width(net, x)), x)


def _convnext(net: LayerWriter, x: str) -> str:
    inner = convolution(net, x, _width(net, x), 7, groups=_width(net, x))
    rows = layer_norm(net, net.node("Transpose", inner, perm=[0, 2, 3, 1]))
    rows = linear(net, linear(net, rows, 4 * _width(net, x), "gelu"), _width(net, x))
    scaled = net.node("Mul", rows, net.weight((_width(net, x),), 1))
    return _add(net, net.node("Transpose", scaled, perm=[0, 3, 1, 2]), x)


def _shufflenet(net: LayerWriter, x: str) -> str:
    batch, width, *image = net.shape(x)
    kept, rest = _halves(net, x)
    rest = convolution(net, rest, width // 2, act="relu")
    rest = convolution(net, rest, width // 2, 3, groups=width // 2)
    joined = _concat(net, kept, convolution(net, rest, width // 2, act="relu"))
    turned = net.node("Transpose", net.reshape(joined, batch, 2, width // 2, *image), perm=[0, 2, 1, 3, 4])
    return net.reshape(turned, batch, width, *image)


def _ghostnet(net: LayerWriter, x: str) -> str:
    wide = convolution(net, x, 3 * _width(net, x) // 2, act="relu")
    width = _width(net, wide)
    wide = _concat(net, wide, convolution(net, wide, width, 3, groups=width, act="relu"))
    narrow = convolution(net, wide, _width(net, x) // 2)
    cheap = convolution(net, narrow, _width(net, narrow), 3, groups=_width(net, narrow))
    return _add(net, _concat(net, narrow, cheap), x)


def _mixnet(net: LayerWriter, x: str) -> str:
    inner = convolution(net, x, 6 * _width(net, x), act="silu")
    parts = net.nodes(3, "Split", inner, axis=1, num_outputs=3)
    mixed = [
        convolution(net, part, _width(net, part), window, groups=_width(net, part), act="silu")
        for part, window in zip(parts, (3, 5, 7), strict=True)
    ]
    return _add(net, convolution(net, _concat(net, *mixed), _width(net, x)), x)


def _squeezenet(net: LayerWriter, x: str) -> str:
    narrow = convolution(net, x, _width(net, x) // 8, act="relu")
    wide = [convolution(net, narrow, _width(net, x) // 2, window, act="relu") for window in (1, 3)]
    return _concat(net, *wide)


def _vgg(net: LayerWriter, x: str) -> str:
    x = convolution(net, convolution(net, x, _width(net, x), 3, act="relu"), _width(net, x), 3, act="relu")
    return net.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])


def _unet_up(net: LayerWriter, x: str) -> str:
    half = _width(net, x) // 2
    weights = net.weight((_width(net, x), half, 2, 2), _width(net, x)), net.weight((half,), 1)
    wide = net.node("ConvTranspose", x, *weights, strides=[2, 2], kernel_shape=[2, 2])
    joined = _concat(net, net.input(net.shape(wide)), wide)
    return convolution(net, convolution(net, joined, half, 3, act="relu"), half, 3, act="relu")


def _deeplab(net: LayerWriter, x: str) -> str:
    branches = [convolution(net, x, 256, act="relu")]
    branches += [
        convolution(net, x, 256, 3, dilation=rate, pads=(rate,) * 4, act="relu") for rate in (12, 24, 36)
    ]
    return convolution(net, _concat(net, *branches), 256, act="relu")


def _hrnet(net: LayerWriter, x: str) -> str:
    batch, width, height, wide = net.shape(x)
    coarse = net.input((batch, 2 * width, height // 2, wide // 2))
    fine = _add(net, x, upsample(net, convolution(net, coarse, width)), "relu")
    down = _add(net, convolution(net, x, 2 * width, 3, stride=2), coarse, "relu")
    return _add(net, fine, upsample(net, convolution(net, down, width)))


def _fpn(net: LayerWriter, x: str) -> str:
    batch, _, height, wide = net.shape(x)
    coarse = net.input((batch, 256, height // 2, wide // 2))
    return convolution(net, _add(net, convolution(net, x, 256), upsample(net, coarse)), 256, 3)


def _yolo_split(net: LayerWriter, x: str) -> str:
    first, second = _halves(net, convolution(net, x, _width(net, x), act="silu"))
    inner = convolution(net, second, _width(net, second), 3, act="silu")
    third = _add(net, convolution(net, inner, _width(net, second), 3, act="silu"), second)
    return convolution(net, _concat(net, first, second, third), _width(net, x), act="silu")


def _yolo_pools(net: LayerWriter, x: str) -> str:
    parts = [convolution(net, x, _width(net, x) // 2, act="silu")]
    for _ in range(3):
        parts.append(_max_pool(net, parts[-1], 5))
    return convolution(net, _concat(net, *parts), _width(net, x), act="silu")


def _repvgg(net: LayerWriter, x: str) -> str:
    total = _add(net, convolution(net, x, _width(net, x), 3), convolution(net, x, _width(net, x)))
    scaled = net.node("Mul", x, net.positive((_width(net, x), 1, 1)))
    return _add(net, total, scaled, "relu")


def _xception(net: LayerWriter, x: str) -> str:
    inner = x
    for _ in range(3):
        ready = net.node("Relu", inner)
        inner = convolution(net, ready, _width(net, x), 3, groups=_width(net, x))
        inner = convolution(net, inner, _width(net, x))
    return _add(net, inner, x)


def _diffusion(net: LayerWriter, x: str) -> str:
    inner = activation(net, group_norm(net, x, 32), "silu")
    inner = convolution(net, inner, _width(net, x), 3)
    step = net.input((net.shape(x)[0], _width(net, x), 1, 1))
    inner = activation(net, group_norm(net, net.node("Add", inner, step), 32), "silu")
    return _add(net, convolution(net, inner, _width(net, x), 3), x)


def _super_resolution(net: LayerWriter, x: str) -> str:
    inner = _resnet_basic(net, x)
    return net.node("DepthToSpace", convolution(net, inner, 4 * _width(net, x), 3), blocksize=2, mode="CRD")


def _resnet_3d(net: LayerWriter, x: str) -> str:
    inner = convolution(net, x, _width(net, x), 3, act="relu")
    return _add(net, convolution(net, inner, _width(net, x), 3), x, "relu")


def _r2plus1d(net: LayerWriter, x: str) -> str:
    inner = convolution(net, x, 9 * _width(net, x) // 4, (1, 3, 3), act="relu")
    return _add(net, convolution(net, inner, _width(net, x), (3, 1, 1)), x, "relu")


def _x3d(net: LayerWriter, x: str) -> str:
    inner = convolution(net, x, 9 * _width(net, x) // 4, act="relu")
    inner = convolution(net, inner, _width(net, inner), 3, groups=_width(net, inner))
    inner = activation(net, squeeze_excite(net, inner, 8), "silu")
    return _add(net, convolution(net, inner, _width(net, x)), x, "relu")


VISION_BLOCKS: Final[dict[str, tuple[Write, Stages]]] = {
    "resnet-basic": (_resnet_basic, _image((64, 56), (128, 28), (256, 14), (512, 7))),
    "resnet-bottleneck": (_resnet_bottleneck, _image((256, 56), (512, 28), (1024, 14), (2048, 7))),
    "resnet-down": (_resnet_down, _image((256, 56), (512, 28), (1024, 14))),
    "resnext": (_resnext, _image((256, 56), (512, 28), (1024, 14))),
    "regnet": (_regnet, _image((48, 56), (120, 28), (336, 14), (888, 7))),
    "res2net": (_res2net, _image((256, 56))),
    "resnest": (_resnest, _image((256, 56), (512, 28), (1024, 14))),
    "densenet": (_densenet, _image((64, 56), (256, 28), (512, 14), (832, 7))),
    "inception": (_inception, _image((192, 35), (256, 35), (288, 35))),
    "inception-long": (_inception_long, _image((768, 17))),
    "mobilenet-v1": (_mobilenet_v1, _image((32, 112), (128, 56), (256, 28), (512, 14))),
    "mobilenet-v2": (_mobilenet_v2, _image((24, 56), (32, 28), (64, 14), (96, 14), (160, 7))),
    "mobilenet-v3": (_mobilenet_v3, _image((40, 28), (112, 14), (160, 7))),
    "efficientnet": (_efficientnet, _image((40, 28), (112, 14), (192, 7), (48, 33))),
    "efficientnet-v2": (_efficientnet_v2, _image((24, 112), (48, 56), (64, 28))),
    "convnext": (_convnext, _image((96, 56), (192, 28), (384, 14), (768, 7))),
    "shufflenet": (_shufflenet, _image((116, 28), (232, 14), (464, 7))),
    "ghostnet": (_ghostnet, _image((24, 56), (40, 28), (80, 14), (160, 7))),
    "mixnet": (_mixnet, _image((40, 28), (80, 14), (120, 14))),
    "squeezenet": (_squeezenet, _image((128, 55), (256, 27), (512, 13))),
    "vgg": (_vgg, _image((64, 112), (128, 56), (256, 28), (512, 14))),
    "unet-up": (_unet_up, _image((128, 64), (256, 32), (512, 16))),
    "deeplab": (_deeplab, _image((320, 16), (320, 33), (512, 28))),
    "hrnet": (_hrnet, _image((18, 56), (32, 56), (48, 64))),
    "fpn": (_fpn, _image((256, 80), (512, 40), (1024, 20))),
    "yolo-split": (_yolo_split, _image((64, 80), (128, 40), (256, 20))),
    "yolo-pools": (_yolo_pools, _image((256, 20), (512, 20), (512, 13))),
    "repvgg": (_repvgg, _image((48, 56), (96, 28), (192, 14), (64, 56))),
    "xception": (_xception, _image((728, 19), (256, 37))),
    "diffusion": (_diffusion, _image((320, 32), (128, 64), (640, 16))),
    "super-resolution": (_super_resolution, _image((32, 96), (64, 64))),
    "resnet-3d": (_resnet_3d, ((64, 8, 56, 56), (128, 4, 28, 28), (256, 4, 14, 14))),
    "r2plus1d": (_r2plus1d, ((64, 8, 56, 56), (128, 4, 28, 28))),
    "x3d": (_x3d, ((24, 13, 56, 56), (48, 13, 28, 28), (96, 13, 14, 14))),
}
