"""A group of calls as operations on blocked tensors (te.operators.blocked_layout)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Final

import numpy as np

from intarsia.ir import AttrValue, DType, TensorType
from intarsia.ir.attributes import NO_ATTRS
from intarsia.native.graph.bfloat_steps import BfloatStep, widened
from intarsia.native.graph.blocked_arguments import BlockedArguments, NotBlockedError
from intarsia.native.graph.blocked_integers import (
    blocked_integers,
    blocked_upsampling,
    convolution_by_table,
    packed_blocks,
)
from intarsia.native.graph.blocked_steps import (
    BLOCKED_TYPES,
    GLOBAL,
    POINTWISE,
    QUANTISING,
    WINDOWED,
    form_of,
    is_worthwhile,
    order_of_result,
)
from intarsia.native.graph.channel_order import ChannelOrder
from intarsia.native.graph.convolution_algorithm import (
    BY_ESTIMATE,
    ConvolutionAlgorithms,
    transformable_shape,
)
from intarsia.native.graph.convolution_form import ConvolutionForm, ConvolutionKind, arranged_weight
from intarsia.native.graph.dequantised import attribute
from intarsia.native.graph.integer_steps import IntegerStep
from intarsia.native.graph.kernel_dag import KernelDag, step_name, with_placeholders
from intarsia.native.graph.region_plan import Array, RegionValue
from intarsia.native.graph.straight_line import KernelStep
from intarsia.native.machine.relative_costs import REFERENCE_COSTS, RelativeCosts
from intarsia.native.te import Tensor
from intarsia.native.te import compute as compute_tensor
from intarsia.native.te.operators import ComputeCall, compute, compute_call_of
from intarsia.native.te.operators.bfloat_sums import dot_of_pairs
from intarsia.native.te.operators.blocked_convolution import (
    blocked_convolution,
    convolution_of_plain,
    depthwise_convolution,
    filled_block,
    pack_depthwise_weight,
    pack_weight,
    pack_weight_of_plain,
)
from intarsia.native.te.operators.blocked_layout import BLOCKED, PADDING, blocked_array, blocked_bias
from intarsia.native.te.operators.blocked_pooling import (
    blocked_average_pool,
    blocked_global_pool,
    blocked_max_pool,
)
from intarsia.native.te.operators.blocked_transposed_convolution import (
    blocked_transposed_convolution,
    pack_transposed_weight,
)
from intarsia.native.te.operators.channel_tables import first_pixels
from intarsia.native.te.operators.dilated_phases import from_phases, to_phases, windows_in_phases
from intarsia.native.te.operators.grouped_convolution import grouped_convolution
from intarsia.native.te.operators.narrow_transposed_convolution import (
    pack_weight_of_pixel,
    transposed_convolution_of_pixel,
)
from intarsia.native.te.operators.pooling import ZERO_POINT
from intarsia.native.te.operators.upsampling import dense_upsamplings_of
from intarsia.native.te.operators.windows import Window, windows_of
from intarsia.native.te.operators.winograd import winograd_convolution, winograd_weight

_OF_NUMBERS: Final = (ConvolutionKind.DEPTHWISE, ConvolutionKind.OF_PLAIN)
"""Declarations without words of channels."""


@dataclass(frozen=True, slots=True, eq=False)
class BlockedDag:
    """The computation of a group on blocked tensors, and the order of its result's channels."""

    kernel: KernelDag
    order: ChannelOrder


def blocked_dag(
    steps: Sequence[KernelStep],
    values: Sequence[RegionValue],
    lanes: int,
    algorithms: ConvolutionAlgorithms = BY_ESTIMATE,
    form: str = "",
    costs: RelativeCosts = REFERENCE_COSTS,
    *,
    always: bool = False,
) -> BlockedDag | None:
    """Declare consecutive calls with a blocked result; None if the plain layout is better.

    Convolutions with constant weights are blocked, and pools and elementwise operators after them.

    Args:
        steps: Steps in order; the last one computes the only result.
        values: Values so far, with their chosen layouts.
        lanes: Number of channels of a block.
        algorithms: Algorithms of convolutions that Winograd can compute.
        form: Value of the `GroupForm` of a grouped convolution; "" for the rule.
        costs: Costs of the machine.
        always: Whether the result is blocked where that does not pay off as well.
    """
    if not always and not is_worthwhile(steps, values, lanes):
        return None
    rank = len(values[steps[-1].outputs[0]].type.static_shape)
    order = order_of_result(steps, values, lanes, form)
    builder = _Builder(values, lanes, rank, order, BlockedArguments(values), algorithms, form, costs)
    try:
        for step in steps:
            builder.add(step)
    except NotBlockedError:
        return None
    result = builder.results[steps[-1].outputs[0]]
    return BlockedDag(with_placeholders((result,), builder.arguments.sources), order)


@dataclass(eq=False)
class _Builder:
    """Builder of the declaration of a group.

    Attributes:
        values: Values of the region.
        lanes: Number of channels of a block.
        rank: Number of dimensions of the plain tensors.
        order: Order of the channels of results.
        arguments: Placeholders of the group.
        algorithms: Algorithms of convolutions that Winograd can compute.
        form: Value of the `GroupForm` of a grouped convolution; "" for the rule.
        results: Blocked results of steps, by value number.
    """

    values: Sequence[RegionValue]
    lanes: int
    rank: int
    order: ChannelOrder
    arguments: BlockedArguments
    algorithms: ConvolutionAlgorithms
    form: str
    costs: RelativeCosts
    results: dict[int, Tensor] = field(default_factory=dict)
    _count: Counter[str] = field(default_factory=Counter)

    def add(self, step: KernelStep) -> None:
        """Declare a step.

        Raises:
            NotBlockedError: The step has no declaration on blocked tensors.
        """
        name = step_name(step, self._count)
        if isinstance(step, IntegerStep):
            self.results[step.outputs[0]] = self._integers(step, name)
            return
        match str(step.op):
            case "Conv" if isinstance(step, BfloatStep):
                result = self._bfloats(step, name)
            case "Conv":
                result = self._convolution(step, name)
            case "ConvTranspose":
                result = self._transposed_convolution(step, name)
            case operator if operator in WINDOWED:
                result = self._pool(step, name)
            case operator if operator in GLOBAL:
                result = self._global_pool(step, name)
            case operator if operator in POINTWISE | QUANTISING:
                result = self._pointwise(step, name)
            case _:
                raise NotBlockedError
        self.results[step.outputs[0]] = result

    def _integers(self, step: IntegerStep, name: str) -> Tensor:
        if str(step.op) == "ConvTranspose":
            return blocked_upsampling(step, name, self.arguments, self.order, self.results)
        form = form_of(step, self.values, self.lanes, self.form)
        if form is None:
            raise NotBlockedError
        return blocked_integers(step, name, self.arguments, (form, self.order), self.results)

    def _bfloats(self, step: BfloatStep, name: str) -> Tensor:
        form, number = form_of(step, self.values, self.lanes, self.form), self._input_number(step)
        if form is None:
            raise NotBlockedError
        windows = step.windows(self.values[number].type.static_shape)
        if form.kind in _OF_NUMBERS:
            return self._sums_of_floats(step, form, windows, step.bias, name)
        weight, inner = self.arguments.constant(step.args[1]), name if step.bias is None else f"{name}.conv"
        if form.kind is ConvolutionKind.BY_TABLE:
            sums = convolution_by_table(self.arguments, number, weight, form, windows, inner)
            return self._with_bias(sums, step.bias, name)
        x, words = (
            self.arguments.words(number, form.source),
            self.arguments.packed(packed_blocks(weight, form)),
        )
        sums = blocked_convolution(x, words, windows, inner, form.blocks, product=dot_of_pairs)
        return self._with_bias(sums, step.bias, name)

    def _convolution(self, step: KernelStep, name: str) -> Tensor:
        described, form = compute_call_of(step.call, name), form_of(step, self.values, self.lanes, self.form)
        if form is None:
            raise NotBlockedError
        bias = self.arguments.constant(step.args[2]) if described.has_input(2) else None
        taps = self.arguments.constant(step.args[1]).shape[2:]
        windows = windows_of(described, described.input(0).shape[2:], taps)
        return self._sums_of_floats(step, form, windows, bias, name)

    def _sums_of_floats(
        self,
        step: KernelStep,
        form: ConvolutionForm,
        windows: Sequence[Window],
        bias: Array | None,
        name: str,
    ) -> Tensor:
        """Declare a convolution in float32; one of bfloat16 numbers widens what it reads."""
        inner = name if bias is None else f"{name}.conv"
        weight, packed = self._weight(step), self.arguments.packed
        match form.kind:
            case ConvolutionKind.DEPTHWISE:
                taps = packed(pack_depthwise_weight(form.source.arranged(weight, 0), self.lanes))
                x = self._wide(step, self._blocked_input(step, form.source), name, {BLOCKED: PADDING})
                result = depthwise_convolution(x, taps, windows, inner)
            case ConvolutionKind.OF_PLAIN:
                if form.groups > 1:
                    weight = form.result.arranged(weight, 0)
                taps = packed(pack_weight_of_plain(weight, self.lanes))
                own_blocks = form.result.blocks // form.groups
                x = self._wide(step, self._plain_input(step), name)
                result = convolution_of_plain(x, taps, windows, inner, own_blocks)
            case ConvolutionKind.BLOCKED:
                result = self._blocked_convolution(step, form, windows, inner)
            case ConvolutionKind.BY_TABLE:
                result = self._convolution_by_table(step, form, windows, inner)
        return self._with_bias(result, bias, name)

    def _blocked_convolution(
        self, step: KernelStep, form: ConvolutionForm, windows: Sequence[Window], name: str
    ) -> Tensor:
        weight = arranged_weight(self.arguments.constant(step.args[1]), form)
        blocks = form.blocks
        x, shape = self._blocked_input(step, form.source), transformable_shape(step.call)
        crosses_groups = weight.shape[0] // form.groups % self.lanes > 0 and form.groups > 1
        tile = 0 if shape is None or crosses_groups else self.algorithms.tile(shape, self.costs)
        if tile:
            moved = self.arguments.packed(winograd_weight(weight, tile, self.lanes, self.lanes))
            if shape is None or shape.dilation == 1:
                return winograd_convolution(x, moved, windows, tile, name, blocks)
            inner = windows_in_phases(windows, tile)
            phases = to_phases(x, windows, inner, f"{name}.phases")
            summed = winograd_convolution(phases, moved, inner, tile, f"{name}.summed", blocks)
            return from_phases(summed, windows, name)
        is_filled = form.groups == 1 and form.source.is_natural
        read = filled_block(weight.shape[1], self.lanes) if is_filled else self.lanes
        taps = self.arguments.packed(pack_weight(weight, read, self.lanes, form.groups))
        return blocked_convolution(x, taps, windows, name, blocks)

    def _convolution_by_table(
        self, step: KernelStep, form: ConvolutionForm, windows: Sequence[Window], name: str
    ) -> Tensor:
        weight = form.result.arranged(self.arguments.constant(step.args[1]), 0)
        taps = self.arguments.packed(pack_weight_of_plain(weight, self.lanes))
        number, pixels = self._input_number(step), prod(window.extent for window in windows)
        first = first_pixels(form.source.place_of, pixels, self.lanes).reshape(form.groups, -1)
        x = self.arguments.images(number, form.source)
        return grouped_convolution(x, self.arguments.packed(first), taps, windows, name)

    def _weight(self, step: KernelStep) -> Array:
        """Return the weights of a convolution whose sums are of single numbers, as those are multiplied."""
        weight = self.arguments.constant(step.args[1])
        return weight.astype(np.float32) if isinstance(step, BfloatStep) else weight

    def _wide(
        self, step: KernelStep, x: Tensor, name: str, attrs: Mapping[str, AttrValue] = NO_ATTRS
    ) -> Tensor:
        """Return the numbers that a convolution reads, as those are multiplied."""
        return widened(x, f"{name}.wide", attrs) if isinstance(step, BfloatStep) else x

    def _transposed_convolution(self, step: KernelStep, name: str) -> Tensor:
        described = compute_call_of(step.call, name)
        weight, dimensions = self.arguments.constant(step.args[1]), dense_upsamplings_of(described)
        if dimensions is None:
            raise NotBlockedError
        bias = self.arguments.constant(step.args[2]) if described.has_input(2) else None
        inner = name if bias is None else f"{name}.conv"
        if all(dimension.extent == 1 for dimension in dimensions):
            packed = self.arguments.packed(pack_weight_of_pixel(weight, dimensions, self.lanes))
            result = transposed_convolution_of_pixel(self._plain_input(step), packed, inner)
        else:
            packed = self.arguments.packed(pack_transposed_weight(weight, dimensions, self.lanes, self.lanes))
            result = blocked_transposed_convolution(self._blocked_input(step), packed, dimensions, inner)
        return self._with_bias(result, bias, name)

    def _with_bias(self, tensor: Tensor, bias: Array | None, name: str) -> Tensor:
        if bias is None:
            return tensor
        return blocked_bias(
            tensor, self.arguments.packed(blocked_array(self.order.arranged(bias, 0), self.lanes, 0)), name
        )

    def _pool(self, step: KernelStep, name: str) -> Tensor:
        described = compute_call_of(step.call, name)
        windows = windows_of(described, described.input(0).shape[2:], described.integers("kernel_shape"))
        x, inner = self._pooled(step, name)
        if str(step.op) == "MaxPool":
            return self._rounded(step, blocked_max_pool(x, windows, inner), name)
        with_padding, zero = bool(described.integer("count_include_pad")), attribute(step, ZERO_POINT, 0)
        return self._rounded(step, blocked_average_pool(x, windows, with_padding, inner, zero), name)

    def _global_pool(self, step: KernelStep, name: str) -> Tensor:
        x, inner = self._pooled(step, name)
        is_max, zero = str(step.op) == "GlobalMaxPool", attribute(step, ZERO_POINT, 0)
        return self._rounded(step, blocked_global_pool(x, inner, is_max, zero), name)

    def _pooled(self, step: KernelStep, name: str) -> tuple[Tensor, str]:
        """Return what a pool reads, in float32 for bfloat16 numbers, and the name of its unrounded result."""
        x = self._blocked_input(step, self.order)
        if x.dtype is not DType.BFLOAT16:
            return x, name
        return widened(x, f"{name}.wide"), f"{name}.f32"

    def _rounded(self, step: KernelStep, x: Tensor, name: str) -> Tensor:
        """Return a result in the type that the region stores."""
        dtype = self.values[step.outputs[0]].type.dtype
        return x if x.dtype is dtype else compute_tensor(x.shape, lambda *i: x[i].astype(dtype), name)

    def _pointwise(self, step: KernelStep, name: str) -> Tensor:
        described = compute_call_of(step.call, name)
        if str(step.op) in QUANTISING and any(self._is_of_channels(arg) for arg in step.args[1:]):
            raise NotBlockedError
        inputs = tuple(None if arg is None else self._broadcast(arg) for arg in step.args)
        batch, _, *spatial = described.shape
        type_ = TensorType((batch, self.order.blocks, *spatial, self.lanes), described.output_type.dtype)
        constants = tuple(None if arg is None else self._scalar(arg) for arg in step.args)
        call: ComputeCall = replace(described, inputs=inputs, output_types=(type_,), constants=constants)
        return compute(call)[0]

    def _is_of_channels(self, number: int | None) -> bool:
        """Return whether a scale or zero point differs between elements."""
        return number is not None and prod(self.values[number].type.static_shape) > 1

    def _scalar(self, number: int) -> Array | None:
        constant = self.values[number].constant
        return constant if constant is not None and constant.size == 1 else None

    def _broadcast(self, number: int) -> Tensor:
        """Return an argument in a form whose broadcast over blocks equals the plain broadcast."""
        if number in self.results:
            return self.results[number]
        value = self.values[number]
        shape = value.type.static_shape
        if value.type.dtype not in BLOCKED_TYPES or len(shape) > self.rank:
            raise NotBlockedError
        if all(extent == 1 for extent in shape):
            return self.arguments.plain(number)
        full = (1,) * (self.rank - len(shape)) + shape
        if full[1] == 1:
            return self.arguments.stretched(number, (*full, 1))
        if value.constant is not None:
            return self._packed_constant(value.constant.reshape(full))
        if full != shape:
            raise NotBlockedError
        return self.arguments.blocked(number, self.order)

    def _packed_constant(self, array: Array) -> Tensor:
        return self.arguments.packed(blocked_array(self.order.arranged(array, 1), self.lanes))

    def _blocked_input(self, step: KernelStep, order: ChannelOrder | None = None) -> Tensor:
        """Return the input that windows slide over, blocked."""
        number = self._input_number(step)
        channels = self.values[number].type.static_shape[1]
        return self.arguments.blocked(number, order or ChannelOrder.natural(channels, self.lanes))

    def _plain_input(self, step: KernelStep) -> Tensor:
        """Return the input that windows slide over, plain."""
        return self.arguments.plain(self._input_number(step))

    def _input_number(self, step: KernelStep) -> int:
        """Return the number of the input that windows slide over, which must come from outside the group."""
        number = step.args[0]
        if number is None or number in self.results or self.values[number].constant is not None:
            raise NotBlockedError
        return number
