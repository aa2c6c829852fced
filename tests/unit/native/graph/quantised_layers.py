"""Random quantised convolutions and products, with their exact results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st
from tests.unit.native.graph.programs import constant

from intarsia.ir import Expr, Function, GlobalVar, IRModule, TensorType, Var
from intarsia.op import call

Array = npt.NDArray[Any]

BYTES = st.sampled_from((np.uint8, np.int8))


@dataclass(frozen=True)
class Layer:
    """A quantised layer in float32's operators.

    Scales are powers of two and sums small, so that everything but the last rounding is exact.

    Attributes:
        operator: Conv, MatMul or Gemm.
        x: Shape of the input.
        weight: Shape of the weights.
        attrs: Attributes of the operator.
        dtype: Type of the quantised input and result.
        weight_dtype: Type of the quantised weights.
        zero: Zero point of the input.
        is_per_channel: Whether each output channel has a scale.
        bias: "int32", "float32", or "" for none.
        is_requantised: Whether the result is quantised.
        seed: Seed of all numbers.
    """

    operator: str
    x: tuple[int, ...]
    weight: tuple[int, ...]
    attrs: dict[str, Any]
    dtype: Any
    weight_dtype: Any
    zero: int
    is_per_channel: bool
    bias: str
    is_requantised: bool
    seed: int

    @property
    def channel(self) -> int:
        """Axis of the output channels of the weights."""
        return 0 if self.operator == "Conv" or self.attrs.get("transB") else 1

    def numbers(self) -> tuple[Array, Array, Array, Array]:
        """The input, the weights, the scales of the weights, and the bias in multiples of the scale."""
        random = np.random.default_rng(self.seed)
        channels = self.weight[self.channel]
        limits = np.iinfo(self.dtype)
        x = random.integers(limits.min, limits.max, self.x, self.dtype, endpoint=True)
        signed = random.integers(-128, 127, self.weight, np.int16, endpoint=True)
        offset = 128 if self.weight_dtype is np.uint8 else 0
        scale = 2.0 ** random.integers(-8, -4, channels if self.is_per_channel else ())
        bias = random.integers(-5000, 5000, channels, np.int32)
        return x, (signed + offset).astype(self.weight_dtype), scale.astype(np.float32), bias

    def program(self) -> Function:
        """The program; its parameter is the quantised input."""
        x, weight, scale, bias = self.numbers()
        parameter = Var("x", checked_type=TensorType.of(x))
        of_x = constant(2.0**-5), constant(self.zero, self.dtype)
        middle = np.full(scale.shape, 128 if self.weight_dtype is np.uint8 else 0)
        axis = self.channel
        args: list[Expr] = [
            call("DequantizeLinear", parameter, *of_x),
            call(
                "DequantizeLinear",
                constant(weight, self.weight_dtype),
                constant(scale),
                constant(middle, self.weight_dtype),
                axis=axis,
            ),
        ]
        if self.bias == "int32":
            of_bias = np.broadcast_to(scale * np.float32(2.0**-5), bias.shape)
            args.append(call("DequantizeLinear", constant(bias, np.int32), constant(of_bias), axis=0))
        elif self.bias:
            args.append(constant(bias / 64))
        result = call(self.operator, *args, **self.attrs)
        if self.is_requantised:
            result = call("QuantizeLinear", call("Relu", result), constant(2.0**-2), constant(3, self.dtype))
        function = IRModule({GlobalVar("main"): Function((parameter,), result)})["main"]
        assert isinstance(function, Function)
        return function

    def expected(self) -> Array:
        """The result, by sums of integers."""
        x, weight, scale, bias = self.numbers()
        centred = x.astype(np.int64) - self.zero
        signed = weight.astype(np.int64) - (128 if self.weight_dtype is np.uint8 else 0)
        if self.operator == "Conv":
            sums, shape = convolved(centred, signed, self.attrs), (-1, *(1,) * (len(self.x) - 2))
        else:
            sums, shape = centred @ (signed.T if self.channel == 0 else signed), (-1,)
        if self.bias == "int32":
            sums = sums + bias.reshape(shape)
        value = sums.astype(np.float32) * (scale.reshape(shape if scale.ndim else ()) * np.float32(2.0**-5))
        if self.bias == "float32":
            value = value + (bias / 64).astype(np.float32).reshape(shape)
        if not self.is_requantised:
            return value
        limits = np.iinfo(self.dtype)
        steps = np.rint(np.maximum(value, 0) / np.float32(2.0**-2)) + 3
        quantised: Array = np.clip(steps, limits.min, limits.max).astype(self.dtype)
        return quantised


def convolved(x: Array, weight: Array, attrs: dict[str, Any]) -> Array:
    """The sums of a convolution of groups."""
    weight = _with_zeros_between(weight, attrs.get("dilations", (1, 1)))
    pad, stride = attrs.get("pads", (0, 0, 0, 0)), attrs.get("strides", (1, 1))
    wide = np.pad(x, ((0, 0), (0, 0), (pad[0], pad[2]), (pad[1], pad[3])))
    taps = weight.shape[2:]
    seen = np.lib.stride_tricks.sliding_window_view(wide, taps, (2, 3))[:, :, :: stride[0], :: stride[1]]
    groups = attrs.get("group", 1)
    batch, channels, rows, columns = seen.shape[:4]
    grouped = seen.reshape(batch, groups, channels // groups, rows, columns, *taps)
    factors = weight.reshape(groups, -1, *weight.shape[1:])
    sums: Array = np.einsum("ngchwij,gmcij->ngmhw", grouped, factors)
    return sums.reshape(batch, -1, rows, columns)


def _with_zeros_between(weight: Array, dilations: tuple[int, ...]) -> Array:
    """Weights of windows without dilations."""
    extents = [(taps - 1) * step + 1 for taps, step in zip(weight.shape[2:], dilations, strict=True)]
    wide = np.zeros((*weight.shape[:2], *extents), weight.dtype)
    wide[:, :, :: dilations[0], :: dilations[1]] = weight
    return wide


def dense_channels() -> st.SearchStrategy[tuple[int, int, int]]:
    """Filters, channels and groups of dense convolutions."""
    return st.tuples(st.sampled_from((8, 16, 20, 40)), st.sampled_from((1, 3, 4, 5, 16, 24)), st.just(1))


def depthwise_channels() -> st.SearchStrategy[tuple[int, int, int]]:
    """The same of depthwise convolutions."""
    return st.sampled_from((8, 16, 20, 40)).map(lambda channels: (channels, channels, channels))


@st.composite
def grouped_channels(draw: st.DrawFn) -> tuple[int, int, int]:
    """The same of convolutions in several groups of several channels."""
    groups = draw(st.sampled_from((2, 3, 4, 8)))
    written, read = (draw(st.sampled_from((2, 4, 6, 8, 16, 20))) for _ in range(2))
    return groups * written, groups * read, groups


@st.composite
def convolutions(draw: st.DrawFn) -> Layer:
    taps, stride = draw(st.sampled_from((1, 2, 3))), draw(st.sampled_from((1, 2)))
    pads = tuple(draw(st.integers(0, taps - 1)) for _ in range(4))
    size = draw(st.integers(taps, 9)), draw(st.integers(taps, 9))
    filters, channels, groups = draw(st.one_of(dense_channels(), depthwise_channels(), grouped_channels()))
    attrs = {"pads": pads, "strides": (stride, stride), "group": groups}
    weight = filters, channels // groups, taps, taps
    return _layer(draw, "Conv", (draw(st.integers(1, 2)), channels, *size), weight, attrs)


@st.composite
def depthwise(draw: st.DrawFn) -> Layer:
    """Convolutions of each channel on its own, with windows of up to nine rows."""
    taps = draw(st.integers(1, 9)), draw(st.integers(1, 5))
    strides, dilations = ((draw(st.integers(1, 2)), draw(st.integers(1, 2))) for _ in range(2))
    reach = [(count - 1) * step + 1 for count, step in zip(taps, dilations, strict=True)]
    pads = tuple(draw(st.integers(0, extent - 1)) for extent in (*reach, *reach))
    size = [draw(st.integers(extent, extent + 9)) for extent in reach]
    channels = draw(st.sampled_from((8, 16, 20, 40)))
    attrs = {"pads": pads, "strides": strides, "dilations": dilations, "group": channels}
    return _layer(draw, "Conv", (draw(st.integers(1, 2)), channels, *size), (channels, 1, *taps), attrs)


@st.composite
def products(draw: st.DrawFn) -> Layer:
    depth, columns = draw(st.sampled_from((1, 4, 5, 8, 12, 60, 63, 70))), draw(st.integers(1, 40))
    if draw(st.booleans()):
        rows = draw(st.lists(st.integers(1, 9), min_size=1, max_size=3))
        return _layer(draw, "MatMul", (*rows, depth), (depth, columns), {}, biases=("",))
    is_turned = draw(st.booleans())
    weight = (columns, depth) if is_turned else (depth, columns)
    return _layer(draw, "Gemm", (draw(st.integers(1, 9)), depth), weight, {"transB": int(is_turned)})


def _layer(
    draw: st.DrawFn,
    operator: str,
    x: tuple[int, ...],
    weight: tuple[int, ...],
    attrs: dict[str, Any],
    biases: tuple[str, ...] = ("", "int32", "float32"),
) -> Layer:
    dtype = draw(BYTES)
    limits = np.iinfo(dtype)
    return Layer(
        operator,
        x,
        weight,
        attrs,
        dtype,
        draw(BYTES),
        draw(st.sampled_from((0, int(limits.min), int(limits.max), 5))),
        draw(st.booleans()),
        draw(st.sampled_from(biases)),
        draw(st.booleans()),
        draw(st.integers(0, 2**32 - 1)),
    )
