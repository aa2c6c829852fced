"""Quantised convolutions and products as steps on integers.

    DequantizeLinear(x), DequantizeLinear(constant weights), Conv   ->   IntegerStep(x, weights)

The program stays as it was imported; only the native planner computes with integers: sums in int32 of bytes
times bytes, then one multiplication by the product of the scales. Every other reader of a dequantised value
gets a DequantizeLinear of its own, which fuses into its kernel, so that values between kernels stay bytes.
Dequantised constants become float32 constants, as they would be computed anew in each run.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod
from typing import Final

import numpy as np

from intarsia.ir import Constant, DType, TensorType, Var
from intarsia.native.graph.region_plan import Array, RegionValue
from intarsia.native.graph.straight_line import KernelStep, StraightLine
from intarsia.native.te.operators import compute_call_of
from intarsia.native.te.operators.quantization import dequantized_array
from intarsia.native.te.operators.windows import Window, windows_of
from intarsia.op import call

_BYTES: Final = (DType.INT8, DType.UINT8)
_PRODUCTS: Final = ("Conv", "Gemm", "MatMul")
_WORD: Final = 4
"""Bytes of a word, which one dot product reads."""
_HALF: Final = 128
"""Difference between the unsigned and the signed number of a byte with another highest bit."""
_MOST_SUMMANDS: Final = (2**31 - 1) // (255 * 128)
"""Maximum number of products of a sum that int32 holds for all bytes."""


@dataclass(frozen=True, slots=True, eq=False)
class IntegerStep(KernelStep):
    """A convolution or product of bytes, with the result in float32.

    The result is `(sum of (x - zero) * weight + offset) * scale + bias`. The call is that of the float32
    operator; `args` are the bytes, and the weights: signed bytes of a convolution, words of a product.

    Attributes:
        zero: Zero point of the unsigned bytes of the input; of a depthwise convolution, of its bytes.
        scale: Product of the scales of the input and of the weights of each output channel, float32.
        offset: Bias of each output channel as a multiple of the scale, int32.
        correction: Number to add to sums of uncentred bytes, int32: -zero times the sum of weights.
        bias: Bias of each output channel that is no such multiple, float32; None for none.
    """

    zero: int
    scale: Array
    offset: Array
    correction: Array
    bias: Array | None

    @property
    def is_depthwise(self) -> bool:
        """Whether each channel is convolved on its own."""
        return self.call.attrs.get("group", 1) != 1

    def windows(self, shape: tuple[int, ...]) -> tuple[Window, ...]:
        """Return the windows of a convolution of an input (N, C, spatial ...)."""
        described = compute_call_of(self.call, "conv")
        return windows_of(described, shape[2:], described.input(1).shape[2:])


def with_integer_steps(line: StraightLine, lanes: int) -> StraightLine:
    """Return a region that computes quantised convolutions and products with integers.

    Linear in the region.

    Args:
        line: Region as it was read.
        lanes: Number of channels of a block; 0 if nothing is blocked, and convolutions stay in float32.
    """
    if not any(str(step.op) == "DequantizeLinear" for step in line.steps):
        return line
    return _Rewriting(line, lanes).result()


@dataclass(frozen=True, slots=True)
class _Dequantised:
    """The quantised argument of a step.

    Attributes:
        number: Number of the bytes.
        scale: Scale of all elements, or of each index of an axis.
        zero: Zero point likewise.
        axis: Axis of several scales.
    """

    number: int
    scale: Array
    zero: Array
    axis: int


@dataclass(eq=False)
class _Rewriting:
    """The region as it is written again, step by step.

    Attributes:
        line: Region as it was read.
        lanes: Number of channels of a block.
        values: Values, with those that are added.
        steps: Steps written so far.
    """

    line: StraightLine
    lanes: int
    values: list[RegionValue] = field(init=False)
    steps: list[KernelStep] = field(default_factory=list)
    _dequantising: dict[int, KernelStep] = field(default_factory=dict)
    _kept: frozenset[int] = frozenset()
    _unsigned: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.values = list(self.line.values)
        kept = {self.values[number].same_as for number in self.line.results}
        kept |= {value.same_as for number, value in enumerate(self.values) if value.same_as != number}
        self._kept = frozenset(kept)

    def result(self) -> StraightLine:
        """Return the region with all steps written."""
        for step in self.line.steps:
            if str(step.op) == "DequantizeLinear" and self._is_known(step):
                self._dequantise(step)
            else:
                self.steps.append(self._integer(step) or self._with_own_arguments(step))
        return StraightLine(self.values, self.steps, self.line.params, self.line.results)

    def _is_known(self, step: KernelStep) -> bool:
        """Return whether bytes or constants become float32 with a known scale."""
        number, *parameters = step.args
        if number is None or self.values[step.outputs[0]].type.dtype is not DType.FLOAT32:
            return False
        is_known = all(arg is None or self.values[arg].constant is not None for arg in parameters)
        return is_known and (
            self.values[number].type.dtype in _BYTES or self.values[number].constant is not None
        )

    def _dequantise(self, step: KernelStep) -> None:
        """Remember how a value is dequantised; its readers do it."""
        (output,) = step.outputs
        self._dequantising[output] = step
        if output not in self._kept:
            return
        constant = self._constant(step)
        if constant is None:
            self.steps.append(step)
            return
        for number, value in enumerate(self.values):
            if value.same_as == output:
                elements = constant.reshape(value.type.static_shape)
                self.values[number] = RegionValue(value.type, number, elements)

    def _with_own_arguments(self, step: KernelStep) -> KernelStep:
        """Return a step that reads dequantised copies of its own."""
        renamed = {number: self._own(number) for number in step.args if number in self._dequantising}
        if not renamed:
            return step
        args = (arg if arg is None else renamed.get(arg, arg) for arg in step.args)
        return replace(step, args=tuple(args))

    def _own(self, number: int | None) -> int:
        assert number is not None, "only numbers are dequantised"
        step = self._dequantising[number]
        constant = self._constant(step)
        if constant is not None:
            self.values[number] = replace(self.values[number], constant=constant)
            return number
        if number in self._kept:
            return number
        own = self._add(self.values[number].type)
        self.steps.append(KernelStep(step.call, step.args, (own,)))
        return own

    def _constant(self, step: KernelStep) -> Array | None:
        """Return the elements of a dequantised constant; None for other values."""
        arrays = [None if arg is None else self.values[arg].constant for arg in step.args]
        if arrays[0] is None or arrays[1] is None:
            return None
        zero = arrays[2] if len(arrays) > 2 else None
        return dequantized_array(arrays[0], arrays[1], zero, _attribute(step, "axis", 1), _block(step))

    def _add(self, type_: TensorType, constant: Array | None = None) -> int:
        self.values.append(RegionValue(type_, len(self.values), constant))
        return len(self.values) - 1

    def _integer(self, step: KernelStep) -> KernelStep | None:
        """Return a convolution or product as a step on integers; None if it is none."""
        if str(step.op) not in _PRODUCTS or len(step.args) < 2:
            return None
        x, weight = self._dequantised(step.args[0]), self._dequantised(step.args[1])
        if x is None or weight is None or x.scale.size > 1:
            return None
        array = self.values[weight.number].constant
        if array is None or self.values[x.number].constant is not None:
            return None
        signed = _signed_weight(array, weight.zero)
        if signed is None:
            return None
        if str(step.op) == "Conv":
            return self._convolution(step, x, weight, signed)
        return self._product(step, x, weight, signed)

    def _dequantised(self, number: int | None) -> _Dequantised | None:
        step = self._dequantising.get(-1 if number is None else number)
        if step is None or _block(step):
            return None
        source, scale_number, *zeros = step.args
        assert source is not None, "an argument that must be there"
        assert scale_number is not None, "an argument that must be there"
        scale = self.values[scale_number].constant
        zero = self.values[zeros[0]].constant if zeros and zeros[0] is not None else np.zeros(1, np.int8)
        if scale is None or zero is None or scale.dtype != np.float32:
            return None
        if self.values[source].type.dtype not in _BYTES or scale.ndim > 1:
            return None
        rank = len(self.values[source].type.static_shape)
        axis = _attribute(step, "axis", 1) % max(1, rank)
        return _Dequantised(source, scale.reshape(-1), zero.reshape(-1).astype(np.int64), axis)

    def _convolution(
        self, step: KernelStep, x: _Dequantised, weight: _Dequantised, signed: Array
    ) -> KernelStep | None:
        filters, channels, *taps = signed.shape
        groups = _attribute(step, "group", 1)
        is_depthwise = groups == filters == channels * groups
        is_blocked = self.lanes and filters * 2 >= self.lanes and 1 <= len(taps) <= 3
        if not is_blocked or not (groups == 1 or is_depthwise) or (weight.scale.size > 1 and weight.axis):
            return None
        if prod(signed.shape[1:]) > _MOST_SUMMANDS:
            return None
        number, zero = (x.number, int(x.zero[0])) if groups > 1 else self._as_unsigned(x)
        return self._finished(step, (number, signed), zero, x.scale * weight.scale, filters)

    def _product(
        self, step: KernelStep, x: _Dequantised, weight: _Dequantised, signed: Array
    ) -> KernelStep | None:
        shape, channel = self.values[x.number].type.static_shape, 1
        if signed.ndim != 2 or len(shape) < 2 or (str(step.op) == "Gemm" and not _is_plain_gemm(step)):
            return None
        if _attribute(step, "transB", 0):
            signed, channel = np.ascontiguousarray(signed.T), 0
        depth, columns = signed.shape
        has_other_axis = weight.scale.size > 1 and weight.axis != channel
        if depth % _WORD or not depth or has_other_axis or depth > _MOST_SUMMANDS:
            return None
        number, zero = self._as_unsigned(x)
        return self._finished(step, (number, signed), zero, x.scale * weight.scale, columns)

    def _finished(
        self, step: KernelStep, args: tuple[int, Array], zero: int, scale: Array, channels: int
    ) -> KernelStep | None:
        """Return the step with the bias as integers where it is a multiple of the scale."""
        scales = np.broadcast_to(scale.astype(np.float32), (channels,))
        offset, bias = np.zeros(channels, np.int32), None
        if len(step.args) > 2 and step.args[2] is not None:
            parts = self._bias(step.args[2], scales, channels)
            if parts is None:
                return None
            offset, bias = parts
        number, weight = args
        words = weight if str(step.op) == "Conv" else packed_words(weight)
        constant = self._add(TensorType(words.shape, DType.of(words)), words)
        axes = tuple(range(1, weight.ndim)) if words is weight else 0
        correction = (-zero * weight.sum(axes, np.int64)).astype(np.int32)
        read = (number, constant)
        return IntegerStep(step.call, read, step.outputs, zero, scales, offset, correction, bias)

    def _bias(self, number: int, scales: Array, channels: int) -> tuple[Array, Array | None] | None:
        """Return a bias as integers and floats; None if it is no constant of the channels."""
        none = np.zeros(channels, np.int32)
        step = self._dequantising.get(number)
        if step is not None:
            source, scale_number = step.args[:2]
            integers = None if source is None else self.values[source].constant
            scale = None if scale_number is None else self.values[scale_number].constant
            zero_number = step.args[2] if len(step.args) > 2 else None
            zero = None if zero_number is None else self.values[zero_number].constant
            if (
                integers is not None
                and scale is not None
                and integers.dtype == np.int32
                and (zero is None or not zero.any())
                and integers.size == channels
                and np.allclose(scale.reshape(-1), scales, rtol=1e-6, atol=0)
            ):
                return integers.reshape(-1), None
            number = self._own(number)
        constant = self.values[number].constant
        if constant is None or constant.size not in (1, channels) or constant.dtype != np.float32:
            return None
        if constant.size > 1 and constant.shape[-1] != channels:
            return None
        return none, np.broadcast_to(constant.reshape(-1), (channels,))

    def _as_unsigned(self, x: _Dequantised) -> tuple[int, int]:
        """Return the number of the input as unsigned bytes, and their zero point."""
        value, zero = self.values[x.number], int(x.zero[0])
        if value.type.dtype is DType.UINT8:
            return x.number, zero
        if x.number not in self._unsigned:
            flip = np.array(-_HALF, np.int8)
            flipped = call("BitwiseXor", Var("x", checked_type=value.type), Constant(flip))
            constant = self._add(TensorType((), DType.INT8), flip)
            self._unsigned[x.number] = self._add(value.type)
            self.steps.append(KernelStep(flipped, (x.number, constant), (self._unsigned[x.number],)))
        return self._unsigned[x.number], zero + _HALF


def packed_words(weight: Array) -> Array:
    """Return a matrix (K, N) of signed bytes as words (K / 4, N) of four bytes of a column."""
    depth, columns = weight.shape
    quads = weight.reshape(depth // _WORD, _WORD, columns).transpose(0, 2, 1)
    return np.ascontiguousarray(quads).view(np.int32)[..., 0]


def _signed_weight(array: Array, zero: Array) -> Array | None:
    """Return weights as signed bytes whose zero point is 0; None if it is another one."""
    middle = _HALF if array.dtype == np.uint8 else 0
    if np.any(zero != middle):
        return None
    return array if middle == 0 else (array ^ np.uint8(_HALF)).view(np.int8)


def _is_plain_gemm(step: KernelStep) -> bool:
    attrs = step.call.attrs
    has_bias = len(step.args) > 2 and step.args[2] is not None
    return (
        attrs.get("alpha", 1.0) == 1
        and not attrs.get("transA", 0)
        and (not has_bias or attrs.get("beta", 1.0) == 1)
    )


def _attribute(step: KernelStep, name: str, default: int) -> int:
    value = step.call.attrs.get(name, default)
    assert isinstance(value, int)
    return value


def _block(step: KernelStep) -> int:
    return _attribute(step, "block_size", 0)
