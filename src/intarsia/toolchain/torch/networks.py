"""Operators of networks: products, convolutions, pools, normalisations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import torch
from torch.nn import functional

from intarsia.toolchain.torch.rule import Computation, NodeForm, Rule, Tensor, plain

_CONVOLUTIONS: Final = (functional.conv1d, functional.conv2d, functional.conv3d)
_TRANSPOSED: Final = (
    functional.conv_transpose1d,
    functional.conv_transpose2d,
    functional.conv_transpose3d,
)
_MAXIMA: Final = (functional.max_pool1d, functional.max_pool2d, functional.max_pool3d)
_AVERAGES: Final = (functional.avg_pool1d, functional.avg_pool2d, functional.avg_pool3d)


def _gemm(form: NodeForm) -> Computation:
    alpha, beta = form.attribute("alpha", 1.0), form.attribute("beta", 1.0)
    of_a, of_b = form.attribute("transA", 0), form.attribute("transB", 0)

    def run(a: Tensor, b: Tensor, c: Tensor = None) -> Tensor:
        product = (a.T if of_a else a) @ (b.T if of_b else b)
        product = product if alpha == 1 else alpha * product
        return product if c is None else product + (c if beta == 1 else beta * c)

    return run


def _pads(form: NodeForm) -> tuple[int, ...] | None:
    """What is added before and after each axis; None stands for nothing."""
    kind = form.text("auto_pad", "NOTSET")
    form.require(kind in ("NOTSET", "VALID"), f'with auto_pad "{kind}"')
    pads = tuple(form.attribute("pads", ()))
    return pads if kind == "NOTSET" and any(pads) else None


def _padded(x: Tensor, pads: tuple[int, ...] | None, value: Any = 0) -> Tensor:
    """Torch lists the last axis first."""
    if pads is None:
        return x
    count = len(pads) // 2
    pairs = [pads[axis + count * side] for axis in reversed(range(count)) for side in (0, 1)]
    return functional.pad(x, pairs, value=value)


def _axes(form: NodeForm) -> int:
    """Number of spatial axes."""
    weight = form.fixed[1] if len(form.fixed) > 1 else None
    count = len(form.attribute("kernel_shape", ())) or (0 if weight is None else weight.ndim - 2)
    form.require(1 <= count <= 3, f"over {count} axes")
    return count


def _conv(form: NodeForm) -> Computation:
    axes = _axes(form)
    pads, group = _pads(form), form.attribute("group", 1)
    stride, dilation = form.attribute("strides", (1,) * axes), form.attribute("dilations", (1,) * axes)
    is_even = pads is not None and pads[:axes] == pads[axes:]
    padding = pads[:axes] if pads is not None and is_even else (0,) * axes
    before = None if is_even else pads

    def run(x: Tensor, weight: Tensor, bias: Tensor = None) -> Tensor:
        x = _padded(x, before)
        return _CONVOLUTIONS[axes - 1](x, weight, bias, tuple(stride), padding, tuple(dilation), group)

    return run


def _conv_transpose(form: NodeForm) -> Computation:
    axes = _axes(form)
    form.require("output_shape" not in form.attributes, "with output_shape")
    pads, group = _pads(form) or (0,) * 2 * axes, form.attribute("group", 1)
    stride, dilation = form.attribute("strides", (1,) * axes), form.attribute("dilations", (1,) * axes)
    more = tuple(form.attribute("output_padding", (0,) * axes))
    is_even = pads[:axes] == pads[axes:]
    before = pads[:axes] if is_even else (0,) * axes
    cut = None if is_even else tuple(-pad for pad in pads)

    def run(x: Tensor, weight: Tensor, bias: Tensor = None) -> Tensor:
        convolution = _TRANSPOSED[axes - 1]
        return _padded(convolution(x, weight, bias, tuple(stride), before, more, group, tuple(dilation)), cut)

    return run


def _lrn(form: NodeForm) -> Computation:
    size = form.attribute("size", None)
    form.require(size % 2 == 1, "with an even size")  # torch has its middle elsewhere
    alpha, beta, bias = (form.attribute(*each) for each in (("alpha", 1e-4), ("beta", 0.75), ("bias", 1.0)))
    return lambda x: functional.local_response_norm(x, size, alpha, beta, bias)


def _max_pool(form: NodeForm) -> Computation:
    axes, pads = _axes(form), _pads(form)
    form.require(form.outputs == 1, "with indices")
    form.require(not form.attribute("ceil_mode", 0), "with ceil_mode")
    size = tuple(form.attribute("kernel_shape", ()))
    stride = tuple(form.attribute("strides", (1,) * axes))
    dilation = tuple(form.attribute("dilations", (1,) * axes))

    def run(x: Tensor) -> Tensor:
        least = -torch.inf if x.dtype.is_floating_point else torch.iinfo(x.dtype).min
        return _MAXIMA[axes - 1](_padded(x, pads, least), size, stride, 0, dilation)

    return run


def _average_pool(form: NodeForm) -> Computation:
    axes, pads = _axes(form), _pads(form)
    form.require(not form.attribute("ceil_mode", 0), "with ceil_mode")
    form.require(all(step == 1 for step in form.attribute("dilations", ())), "with dilations")
    size = tuple(form.attribute("kernel_shape", ()))
    stride = tuple(form.attribute("strides", (1,) * axes))
    if pads is None or form.attribute("count_include_pad", 0):
        return lambda x: _AVERAGES[axes - 1](_padded(x, pads), size, stride)
    form.require(pads[:axes] == pads[axes:], "with uneven pads that do not count")
    half = all(pad <= length // 2 for pad, length in zip(pads, size, strict=False))
    form.require(half, "with pads of more than half a window")
    padding = pads[:axes]
    return lambda x: _AVERAGES[axes - 1](x, size, stride, padding, count_include_pad=False)


def _over_space(name: str) -> Rule:
    reduce = getattr(torch, name)
    return plain(lambda x: reduce(x, dim=tuple(range(2, x.dim())), keepdim=True))


def _softmax(name: str) -> Rule:
    function = getattr(torch, name)

    def rule(form: NodeForm) -> Computation:
        axis = form.attribute("axis", -1)
        return lambda x: function(x, dim=axis)

    return rule


def _layer_normalization(form: NodeForm) -> Computation:
    form.require(form.outputs == 1, "with mean and deviation")
    axis, epsilon = form.attribute("axis", -1), form.attribute("epsilon", 1e-5)

    def run(x: Tensor, scale: Tensor, bias: Tensor = None) -> Tensor:
        normal = functional.layer_norm(x, x.shape[axis:], eps=epsilon) * scale
        return normal if bias is None else normal + bias

    return run


def _batch_normalization(form: NodeForm) -> Computation:
    form.require(form.outputs == 1 and not form.attribute("training_mode", 0), "in training")
    epsilon = form.attribute("epsilon", 1e-5)

    def run(x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
        return functional.batch_norm(x, mean, variance, scale, bias, False, 0.0, epsilon)

    return run


NETWORKS: Mapping[str, Rule] = {
    "AveragePool": _average_pool,
    "BatchNormalization": _batch_normalization,
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "Gemm": _gemm,
    "GlobalAveragePool": _over_space("mean"),
    "GlobalMaxPool": _over_space("amax"),
    "LRN": _lrn,
    "LayerNormalization": _layer_normalization,
    "LogSoftmax": _softmax("log_softmax"),
    "MatMul": plain(torch.matmul),
    "MaxPool": _max_pool,
    "Softmax": _softmax("softmax"),
}
"""Rules by name of the operator."""
