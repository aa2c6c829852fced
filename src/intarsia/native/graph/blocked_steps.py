"""Steps that work on blocked tensors, and the channel orders of their results."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from intarsia.ir import Call, DType
from intarsia.native.graph.channel_order import ChannelOrder
from intarsia.native.graph.convolution_form import ConvolutionForm, ConvolutionKind, convolution_form
from intarsia.native.graph.group_form import MOST_WASTE, GroupedShape, GroupForm, form_costs
from intarsia.native.graph.integer_steps import IntegerStep
from intarsia.native.graph.region_plan import Array, RegionValue
from intarsia.native.graph.straight_line import KernelStep, StraightLine
from intarsia.native.te.operators import compute_call_of
from intarsia.native.te.operators.windows import windows_of

POINTWISE: Final = frozenset(
    [
        "Abs",
        "Add",
        "Celu",
        "Clip",
        "Elu",
        "Gelu",
        "HardSigmoid",
        "HardSwish",
        "LeakyRelu",
        "Max",
        "Mean",
        "Min",
        "Mish",
        "Mul",
        "Neg",
        "PRelu",
        "Relu",
        "Selu",
        "Sigmoid",
        "Softplus",
        "Softsign",
        "Sub",
        "Sum",
        "Swish",
        "Tanh",
        "ThresholdedRelu",
    ]
)
"""Operators that map finite elements to finite ones, since padding in a block must stay finite."""
QUANTISING: Final = frozenset({"BitwiseXor", "Cast", "DequantizeLinear", "QuantizeLinear"})
"""Elementwise operators of narrow numbers; with one scale for all elements, channels may lie anywhere."""
_FLOATS: Final = frozenset({DType.FLOAT32, DType.BFLOAT16})
BLOCKED_TYPES: Final = _FLOATS | {DType.FLOAT16, DType.INT8, DType.UINT8}
"""Element types of blocked tensors."""
_BYTEWISE: Final = QUANTISING | {"Concat", "MaxPool"}
"""Operators whose results may be bytes."""
_OF_WORDS: Final = (ConvolutionKind.BLOCKED, ConvolutionKind.DEPTHWISE)
CONVOLUTIONS: Final = frozenset({"Conv", "ConvTranspose"})
WINDOWED: Final = frozenset({"AveragePool", "MaxPool"})
GLOBAL: Final = frozenset({"GlobalAveragePool", "GlobalMaxPool"})
_MOVED_IN_BLOCKS: Final = frozenset({"Concat", "Transpose"})
"""Operators that are done in place on blocked tensors where channels allow it."""


def is_worthwhile(steps: Sequence[KernelStep], values: Sequence[RegionValue], lanes: int) -> bool:
    """Return whether blocking pays off: a convolution to enough channels, or reads of blocked values."""
    names = [str(step.op) for step in steps]
    types = [values[number].type for step in steps for number in step.outputs]
    shapes = [type_.static_shape for type_ in types]
    fits = all(
        type_.dtype in _types_of(step) and len(type_.static_shape) >= 3
        for step in steps
        for type_ in (values[number].type for number in step.outputs)
    )
    if not fits or len(types) != len(steps) or 0 in (extent for shape in shapes for extent in shape):
        return False
    if not CONVOLUTIONS.isdisjoint(names):
        return shapes[-1][1] * 2 >= lanes
    return any(
        arg is not None
        and values[arg].lanes > 0
        and (name not in POINTWISE | QUANTISING or values[arg].type.static_shape == shape)
        for name, step, shape in zip(names, steps, shapes, strict=True)
        for arg in step.args
    )


def _types_of(step: KernelStep) -> frozenset[DType]:
    """Return the types that the result of a step on blocks may have."""
    name = str(step.op)
    if name in _BYTEWISE:
        return BLOCKED_TYPES
    return _FLOATS if name in POINTWISE | WINDOWED | GLOBAL else frozenset({DType.FLOAT32})


def order_of_result(
    steps: Sequence[KernelStep], values: Sequence[RegionValue], lanes: int, decided: str = ""
) -> ChannelOrder:
    """Return the channel order of the result of a group that `is_worthwhile`.

    Args:
        steps: Steps in order.
        values: Values so far, with their chosen layouts.
        lanes: Number of channels of a block.
        decided: Value of the `GroupForm` of a grouped convolution; "" for the rule.
    """
    shape = values[steps[-1].outputs[0]].type.static_shape
    natural = ChannelOrder.natural(shape[1], lanes)
    for step in steps:
        name = str(step.op)
        if name == "Conv":
            form = form_of(step, values, lanes, decided)
            return natural if form is None else form.result
        if name in WINDOWED or name in GLOBAL:
            return natural if step.args[0] is None else given_order(values[step.args[0]], lanes)
        if name in CONVOLUTIONS:
            return natural
    read = (values[arg] for step in steps for arg in step.args if arg is not None)
    blocked = (value.order for value in read if value.lanes == lanes and value.type.static_shape == shape)
    return next((order for order in blocked if order), natural)


def form_of(
    step: KernelStep, values: Sequence[RegionValue], lanes: int, decided: str = ""
) -> ConvolutionForm | None:
    """Return the form of a convolution; None if its weights are not constant, or blocks do not fit.

    Args:
        step: The convolution.
        values: Values so far, with their chosen layouts.
        lanes: Number of channels of a block.
        decided: Value of the `GroupForm` of a grouped convolution; "" for the rule.
    """
    source, weight = (None if arg is None else values[arg] for arg in step.args[:2])
    if source is None or weight is None or weight.constant is None:
        return None
    described = compute_call_of(step.call, "conv")
    windows = windows_of(described, source.type.static_shape[2:], weight.constant.shape[2:])
    order = given_order(source, lanes)
    is_plain, groups = source.order is None, described.integer("group")
    numbers = numbers_of_word(weight.constant.dtype.itemsize)
    form = convolution_form(weight.constant, groups, windows, order, decided, is_plain, numbers)
    if groups == 1 or form is None or form.kind in _OF_WORDS or not is_narrow(weight.constant):
        return form
    if form.kind is ConvolutionKind.BY_TABLE and not (isinstance(step, IntegerStep) and step.widens):
        return form
    # Bytes are widened as whole blocks.
    others = (
        convolution_form(weight.constant, groups, windows, order, name.value, is_plain)
        for name in (GroupForm.MERGED, GroupForm.PADDED)
    )
    return next((other for other in others if other is not None and other.kind in _OF_WORDS), None)


def is_narrow(weight: Array) -> bool:
    """Return whether weights are bytes or bfloat16 numbers, several of which are multiplied as a word."""
    return weight.itemsize < DType.FLOAT32.numpy.itemsize


def numbers_of_word(size: int) -> int:
    """Return how many numbers of a size in bytes are multiplied as a word."""
    return DType.INT32.numpy.itemsize // size


def costs_of_groups(
    call: Call, weight: tuple[int, ...], lanes: int, numbers: int = 1
) -> Mapping[GroupForm, float]:
    """Return the costs of the forms of a grouped convolution on blocked tensors in the natural order.

    Args:
        call: The convolution.
        weight: Shape of its weights, (M, C / groups, taps ...).
        lanes: Number of channels of a block.
        numbers: Numbers that are multiplied as a word.

    Returns:
        Multiplications, zeros included, relative to those of the convolution.
    """
    described = compute_call_of(call, "conv")
    groups = described.integer("group")
    windows = windows_of(described, described.input(0).shape[2:], weight[2:])
    shape = GroupedShape(groups, weight[1], weight[0] // groups)
    given = ChannelOrder.natural(shape.channels, lanes)
    return form_costs(shape, windows, given, numbers=numbers)


def has_byte_words(call: Call, weight: tuple[int, ...], lanes: int, *, has_dot: bool) -> bool:
    """Return whether a grouped convolution of bytes is computed by words of channels.

    Args:
        call: The convolution.
        weight: Shape of its weights, (M, C / groups, taps ...).
        lanes: Number of channels of a block.
        has_dot: Whether one instruction sums products of words, so that they may begin at any channel.
    """
    costs = costs_of_groups(call, weight, lanes, numbers_of_word(1))
    of_words = (cost for form, cost in costs.items() if has_dot or form is not GroupForm.TABLE)
    return min(of_words, default=math.inf) <= MOST_WASTE


def given_order(value: RegionValue, lanes: int) -> ChannelOrder:
    """Return the channel order of a value; the natural order if it has no blocks of this size."""
    if value.order is not None and value.order.lanes == lanes:
        return value.order
    return ChannelOrder.natural(value.type.static_shape[1], lanes)


def read_plain(line: StraightLine) -> frozenset[int]:
    """Return the numbers of the values of a region that no step reads in blocks, directly or as a view."""
    in_blocks = CONVOLUTIONS | WINDOWED | GLOBAL | POINTWISE | QUANTISING | _MOVED_IN_BLOCKS
    blocked = {
        line.values[number].same_as
        for step in line.steps
        if str(step.op) in in_blocks
        for number in step.args
        if number is not None
    }
    written = (number for step in line.steps for number in step.outputs)
    return frozenset(number for number in written if line.values[number].same_as not in blocked)


def lanes_read(steps: Sequence[KernelStep], values: Sequence[RegionValue], lanes: int) -> int:
    """Return the block size of a group: that of the blocked values that it reads, if it has no convolution.

    Args:
        steps: Steps in order.
        values: Values so far, with their chosen layouts.
        lanes: Block size by rule, for other groups.
    """
    if not CONVOLUTIONS.isdisjoint(str(step.op) for step in steps):
        return lanes
    read = (values[arg].lanes for step in steps for arg in step.args if arg is not None)
    return next((size for size in read if size), lanes)
