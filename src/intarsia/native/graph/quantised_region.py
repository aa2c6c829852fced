"""Quantised convolutions and products as steps on integers.

    DequantizeLinear(x), DequantizeLinear(constant weights), Conv   ->   IntegerStep(x, weights)

The program stays as it was imported; only the native planner computes with integers: sums in int32 of bytes
times bytes, then one multiplication by the product of the scales. Every other reader of a dequantised value
gets a DequantizeLinear of its own, which fuses into its kernel, so that values between kernels stay bytes.
Dequantised constants become float32 constants, as they would be computed anew in each run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from intarsia.ir import Call, Constant, DType, TensorType, Var
from intarsia.native.graph.batched_integers import BatchedStep, batched_step, multiplies_matrices
from intarsia.native.graph.blocked_steps import CONVOLUTIONS
from intarsia.native.graph.dequantised import (
    BYTES,
    Dequantised,
    attribute,
    dequantised_by,
    dequantised_constant,
)
from intarsia.native.graph.integer_steps import (
    HALF,
    IntegerStep,
    is_plain_gemm,
    packed_channels,
    packed_words,
    signed_weight,
)
from intarsia.native.graph.quantised_bias import float_bias, whole_bias
from intarsia.native.graph.quantised_means import mean_of_bytes
from intarsia.native.graph.quantised_operators import with_fusible_operators
from intarsia.native.graph.quantised_weights import (
    MOST_SUMMANDS,
    WHOLE,
    ByteForms,
    weights_in_blocks,
    weights_in_words,
)
from intarsia.native.graph.region_plan import Array, RegionValue
from intarsia.native.graph.step_kind import StepKind, step_kind
from intarsia.native.graph.straight_line import KernelStep, StraightLine
from intarsia.native.te.operators.depthwise_words import has_words_of_rows
from intarsia.native.te.operators.quantization import BY_PRODUCT, REQUANTISED, SCALED
from intarsia.op import call

_PRODUCTS: Final = ("Conv", "ConvTranspose", "Gemm", "MatMul")
_MOVES: Final = ("MaxPool", "Transpose")
"""Operators that give the same numbers before they are dequantised as after it."""


def with_integer_steps(
    line: StraightLine,
    forms: ByteForms,
    is_faster_in_floats: Callable[[Call], bool] = lambda _: False,
) -> StraightLine:
    """Return a region that computes quantised convolutions and products with integers.

    Linear in the region.

    Args:
        line: Region as it was read.
        forms: Forms of convolutions of bytes.
        is_faster_in_floats: Predicate: whether a convolution stays in float32 because that is faster.
    """
    fusible = with_fusible_operators(line, forms)
    if not any(str(step.op) == "DequantizeLinear" for step in fusible.steps):
        return fusible
    return _Rewriting(fusible, forms, is_faster_in_floats).result()


@dataclass(eq=False)
class _Rewriting:
    """The region as it is written again, step by step.

    Attributes:
        line: Region as it was read.
        forms: Forms of convolutions of bytes.
        is_faster_in_floats: Predicate of convolutions.
        values: Values, with those that are added.
        steps: Steps written so far.
    """

    line: StraightLine
    forms: ByteForms
    is_faster_in_floats: Callable[[Call], bool]
    values: list[RegionValue] = field(init=False)
    steps: list[KernelStep] = field(default_factory=list)
    _dequantising: dict[int, KernelStep] = field(default_factory=dict)
    _kept: frozenset[int] = frozenset()
    _derived: set[int | None] = field(default_factory=set)
    _positions: dict[int, int] = field(default_factory=dict)
    _reads: Counter[int | None] = field(default_factory=Counter)
    _unsigned: dict[int, int] = field(default_factory=dict)
    _written: set[int] = field(default_factory=set)
    _names: dict[int, int] = field(default_factory=dict)
    _views: dict[int, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.values = list(self.line.values)
        self._kept = frozenset(self.values[number].same_as for number in self.line.results)
        self._reads = Counter(number for step in self.line.steps for number in step.args)
        for number, value in enumerate(self.values):
            if value.same_as != number:
                self._views.setdefault(value.same_as, []).append(number)

    def result(self) -> StraightLine:
        """Return the region with all steps written."""
        for given in self.line.steps:
            step = self._with_names(given)
            if str(step.op) == "DequantizeLinear" and self._is_known(step):
                self._dequantise(step)
            elif not self._moves(step) and not self._restores(step) and not self._averages(step):
                self._append(self._integer(step) or self._requantising(self._with_own_arguments(step)))
        return StraightLine(self.values, self.steps, self.line.params, self.line.results)

    def _append(self, step: KernelStep) -> None:
        """Add a step, and note whether its result comes from quantised numbers."""
        is_source = isinstance(step, IntegerStep | BatchedStep) or str(step.op) == "DequantizeLinear"
        is_kept = step_kind(step) is StepKind.ELEMENTWISE and not self._derived.isdisjoint(step.args)
        if is_source or is_kept:
            self._derived.update(step.outputs)
        self._positions.update(dict.fromkeys(step.outputs, len(self.steps)))
        self.steps.append(step)

    def _requantising(self, step: KernelStep) -> KernelStep:
        """Return a QuantizeLinear of quantised numbers as a product, which is far faster than a quotient.

        Half a step of these numbers' own rounding is more than what the product's rounding changes.
        """
        scale = step.args[1] if str(step.op) == "QuantizeLinear" else None
        array = None if scale is None else self.values[scale].constant
        number = step.args[0]
        if array is None or number is None or number not in self._derived or array.dtype != np.float32:
            return step
        is_float = self.values[number].type.dtype is DType.FLOAT32 and not step.call.attrs.get("precision", 0)
        with np.errstate(divide="ignore"):
            factor = np.asarray(np.float32(1) / array)
        if not is_float or not np.isfinite(factor).all():
            return step
        reciprocal = self._add(self.values[scale or 0].type, factor)
        form = SCALED if factor.size == 1 and self._scale_sums(number, factor.reshape(())) else BY_PRODUCT
        requantising = replace(step.call, attrs=step.call.attrs.updated(**{REQUANTISED: form}))
        return replace(step, call=requantising, args=(number, reciprocal, *step.args[2:]))

    def _scale_sums(self, number: int, factor: Array) -> bool:
        """Multiply the sums that a value is, if nothing else reads them; return whether it is done."""
        position = self._positions.get(number)
        while position is not None and self._is_single(number):
            step = self.steps[position]
            if isinstance(step, IntegerStep):
                self.steps[position] = step.scaled_by(factor)
                return True
            if str(step.op) != "Relu" or step.args[0] is None:
                return False
            number, position = step.args[0], self._positions.get(step.args[0])
        return False

    def _is_single(self, number: int) -> bool:
        """Return whether one step alone reads a value."""
        return self._reads[number] == 1 and number not in self._kept and number not in self._views

    def _is_known(self, step: KernelStep) -> bool:
        """Return whether bytes or constants become float32 with a known scale."""
        number, *parameters = step.args
        if number is None or self.values[step.outputs[0]].type.dtype is not DType.FLOAT32:
            return False
        is_known = all(arg is None or self.values[arg].constant is not None for arg in parameters)
        return is_known and (
            self.values[number].type.dtype in BYTES or self.values[number].constant is not None
        )

    def _dequantise(self, step: KernelStep) -> None:
        """Remember how a value is dequantised, and its views; their readers do it."""
        (output,) = step.outputs
        self._dequantising[output] = step
        constant = (
            dequantised_constant(step, self.values) if output in self._kept or output in self._views else None
        )
        if constant is not None:
            for number in (output, *self._views.get(output, ())):
                elements = constant.reshape(self.values[number].type.static_shape)
                self.values[number] = RegionValue(self.values[number].type, number, elements)
            return
        parts = self._dequantised(output)
        is_uniform = parts is not None and parts.scale.size == 1
        if output in self._kept or (output in self._views and not is_uniform):
            self._append(step)
            self._written.add(output)
        elif parts is not None:
            for number in self._views.get(output, ()):
                source = self.values[parts.number]
                type_ = TensorType(self.values[number].type.static_shape, source.type.dtype)
                self.values.append(RegionValue(type_, source.same_as))
                self._dequantising[number] = self._dequantising_of(len(self.values) - 1, step, (number,))

    def _dequantising_of(
        self, number: int, step: KernelStep, outputs: tuple[int, ...], axis: int = 0
    ) -> KernelStep:
        """Return a DequantizeLinear of other bytes by the parameters of a step."""
        args = (number, *step.args[1:])
        given = [Var(f"x{arg}", checked_type=self.values[arg].type) for arg in args if arg is not None]
        return KernelStep(call("DequantizeLinear", *given, axis=axis), args, outputs)

    def _moves(self, step: KernelStep) -> bool:
        """Move bytes before they are dequantised; return whether the step was such a move."""
        number = step.args[0] if str(step.op) in _MOVES and len(step.outputs) == 1 else None
        parts = self._dequantised(number)
        if number is None or parts is None or self.values[number].same_as in self._written:
            return False
        value, axis = self.values[parts.number], 0
        if value.constant is not None:
            if step.op.name != "Transpose" or value.constant.ndim != 2:
                return False
            moved = np.ascontiguousarray(value.constant.T)
            moved_number, axis = self._add(TensorType(moved.shape, value.type.dtype), moved), 1 - parts.axis
        elif parts.scale.size > 1:
            return False
        else:
            shape = self.values[step.outputs[0]].type.static_shape
            type_ = TensorType(shape, value.type.dtype)
            argument = Var("x", checked_type=value.type)
            moving = replace(step.call, args=(argument,), checked_type=type_)
            moved_number = self._add(type_)
            self._append(KernelStep(moving, (parts.number,), (moved_number,)))
        dequantising = self._dequantising[number]
        self._dequantise(self._dequantising_of(moved_number, dequantising, step.outputs, axis))
        return True

    def _averages(self, step: KernelStep) -> bool:
        """Write a mean of quantised numbers as one of integers; return whether the step was one."""
        steps = mean_of_bytes(step, self._dequantised(step.args[0]), self.values)
        for written in steps or ():
            self._derived.update(written.outputs)
            self._append(written)
        return steps is not None

    def _restores(self, step: KernelStep) -> bool:
        """Return whether a QuantizeLinear restores dequantised bytes; then these take its name."""
        if str(step.op) != "QuantizeLinear" or len(step.args) < 3:
            return False
        parts, (output,) = self._dequantised(step.args[0]), step.outputs
        scale, zero = (None if arg is None else self.values[arg].constant for arg in step.args[1:3])
        if parts is None or scale is None or zero is None or output in self._kept or output in self._views:
            return False
        is_same = self.values[parts.number].type == self.values[output].type
        if not is_same or scale.size != 1 or parts.scale.size != 1:
            return False
        if scale.reshape(-1)[0] != parts.scale[0] or int(zero.reshape(-1)[0]) != int(parts.zero[0]):
            return False
        self._names[output] = parts.number
        return True

    def _with_names(self, step: KernelStep) -> KernelStep:
        """Return a step that reads bytes by the names that they have now."""
        if not any(arg in self._names for arg in step.args if arg is not None):
            return step
        args = (arg if arg is None else self._names.get(arg, arg) for arg in step.args)
        return replace(step, args=tuple(args))

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
        constant = dequantised_constant(step, self.values)
        if constant is not None:
            self.values[number] = replace(self.values[number], constant=constant)
            return number
        if self.values[number].same_as in self._written:
            return number
        value = self._add(self.values[number].type)
        self._append(KernelStep(step.call, step.args, (value,)))
        return value

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
        if multiplies_matrices(step, x, weight, self.values):
            return batched_step(step, self._as_unsigned(x), x, weight, self.values)
        if array is None or self.values[x.number].constant is not None:
            return None
        signed = signed_weight(array, weight.zero)
        if signed is None:
            return None
        if str(step.op) in CONVOLUTIONS:
            return self._convolution(step, x, weight, signed)
        return self._product(step, x, weight, signed)

    def _dequantised(self, number: int | None) -> Dequantised | None:
        step = self._dequantising.get(-1 if number is None else number)
        return None if step is None else dequantised_by(step, self.values)

    def _convolution(
        self, step: KernelStep, x: Dequantised, weight: Dequantised, signed: Array
    ) -> KernelStep | None:
        if str(step.op) == "Conv" and self.is_faster_in_floats(step.call):
            return None
        by_words = weights_in_words(step, signed, weight, self.forms)
        if by_words is not None:
            number, zero = self._as_unsigned(x)
            return self._finished(step, (number, by_words), zero, x.scale * weight.scale, by_words.shape[0])
        arranged = weights_in_blocks(step, signed, weight, self.forms.lanes, has_dot=self.forms.has_dot)
        if arranged is None:
            return None
        filters, channels, *taps = arranged.shape
        is_depthwise = channels == 1 and attribute(step, "group", 1) == filters > 1
        is_by_words = not is_depthwise or (self.forms.has_dot and has_words_of_rows(taps))
        number, zero = self._as_unsigned(x) if is_by_words else (x.number, int(x.zero[0]))
        scale = x.scale * weight.scale
        return self._finished(step, (number, arranged), zero, scale, filters, is_by_words=is_by_words)

    def _product(
        self, step: KernelStep, x: Dequantised, weight: Dequantised, signed: Array
    ) -> KernelStep | None:
        shape, channel = self.values[x.number].type.static_shape, 1
        if signed.ndim != 2 or len(shape) < 2 or (str(step.op) == "Gemm" and not is_plain_gemm(step)):
            return None
        if attribute(step, "transB", 0):
            signed, channel = np.ascontiguousarray(signed.T), 0
        depth, columns = signed.shape
        has_other_axis = weight.scale.size > 1 and weight.axis != channel
        if not depth or has_other_axis or depth > MOST_SUMMANDS:
            return None
        number, zero = self._as_unsigned(x)
        return self._finished(step, (number, signed), zero, x.scale * weight.scale, columns)

    def _finished(
        self,
        step: KernelStep,
        args: tuple[int, Array],
        zero: int,
        scale: Array,
        channels: int,
        *,
        is_by_words: bool = True,
    ) -> KernelStep | None:
        """Return the step with the bias as integers where it is a multiple of the scale."""
        scales = np.broadcast_to(scale.astype(np.float32), (channels,))
        offset, bias = np.zeros(channels, np.int32), None
        number = step.args[2] if len(step.args) > 2 else None
        if number is not None:
            dequantising = self._dequantising.get(number)
            whole = whole_bias(dequantising, self.values, scales)
            if whole is None:
                kept = number if dequantising is None else self._own(number)
                bias = float_bias(self.values[kept].constant, channels)
                if bias is None:
                    return None
            offset = offset if whole is None else whole
        source, weight = args
        is_convolution = str(step.op) in CONVOLUTIONS
        words = weight if is_convolution else packed_words(weight)
        if is_convolution and not self.forms.lanes:
            words = packed_channels(weight)
        constant = self._add(TensorType(words.shape, DType.of(words)), words)
        axes = tuple(range(1, weight.ndim)) if is_convolution else 0
        correction = -zero * weight.sum(axes, np.int64)
        largest = 255 * np.abs(weight.astype(np.int64)).sum(axes) + np.abs(correction) + np.abs(offset)
        is_exact = int(largest.max(initial=0)) < WHOLE
        if not is_exact and not is_by_words:
            return None
        sums = offset, correction.astype(np.int32), bias, is_exact, is_by_words, not self.forms.has_dot
        return IntegerStep(step.call, (source, constant), step.outputs, zero, scales, *sums)

    def _as_unsigned(self, x: Dequantised) -> tuple[int, int]:
        """Return the number of the input as unsigned bytes, and their zero point."""
        value, zero = self.values[x.number], int(x.zero[0])
        if value.type.dtype is DType.UINT8:
            return x.number, zero
        if x.number not in self._unsigned:
            flip = np.array(-HALF, np.int8)
            flipped = call("BitwiseXor", Var("x", checked_type=value.type), Constant(flip))
            constant = self._add(TensorType((), DType.INT8), flip)
            self._unsigned[x.number] = self._add(value.type)
            self.steps.append(KernelStep(flipped, (x.number, constant), (self._unsigned[x.number],)))
        return self._unsigned[x.number], zero + HALF
