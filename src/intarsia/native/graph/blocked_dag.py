"""A group of calls as operations on blocked tensors (te.operators.blocked_layout)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from intarsia.ir import DType, TensorType
from intarsia.native.graph.kernel_dag import KernelDag, Source, SourceForm, step_name, with_placeholders
from intarsia.native.graph.region_plan import Array, RegionValue, blocked_shape
from intarsia.native.graph.straight_line import Step
from intarsia.native.te import Tensor, placeholder
from intarsia.native.te.operators import ComputeCall, compute, compute_call_of
from intarsia.native.te.operators.blocked_convolution import (
    blocked_convolution,
    blocks_of_groups,
    convolution_of_plain,
    depthwise_convolution,
    pack_depthwise_weight,
    pack_weight,
    pack_weight_of_plain,
)
from intarsia.native.te.operators.blocked_layout import blocked_array, blocked_bias
from intarsia.native.te.operators.blocked_pooling import (
    blocked_average_pool,
    blocked_global_pool,
    blocked_max_pool,
)
from intarsia.native.te.operators.windows import windows_of

_POINTWISE = frozenset(
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
"""Of a finite element they make a finite one, as elements that only fill a block must stay finite."""
_WINDOWED = frozenset({"AveragePool", "MaxPool"})
_GLOBAL = frozenset({"GlobalAveragePool", "GlobalMaxPool"})
_FEW_CHANNELS = 4
"""A convolution reads so many channels from a plain tensor."""
_MOST_MERGED = 4
"""Groups of a convolution that become one, if blocks do not fit otherwise: a scalar kernel takes as long."""


class _NotBlockedError(Exception):
    """A form that has no declaration on blocked tensors."""


def blocked_dag(steps: Sequence[Step], values: Sequence[RegionValue], lanes: int) -> KernelDag | None:
    """The calls applied one after another, to a blocked result; None if they are better left plain.

    Blocked are convolutions with constant weights, and pools and elementwise operators that follow them.

    Args:
        steps: In order; the last one makes the only result.
        values: All values so far, with the layouts chosen for them.
        lanes: How many channels a block has.
    """
    if not _is_worthwhile(steps, values, lanes):
        return None
    builder = _Builder(values, lanes, len(_shape(values, steps[-1].outputs[0])))
    try:
        for step in steps:
            builder.add(step)
    except _NotBlockedError:
        return None
    return with_placeholders((builder.made[steps[-1].outputs[0]],), builder.given)


def _is_worthwhile(steps: Sequence[Step], values: Sequence[RegionValue], lanes: int) -> bool:
    """Whether it is a convolution of enough channels, or reads blocks of its shape or in windows."""
    names = [str(step.op) for step in steps]
    types = [values[number].type for step in steps for number in step.outputs]
    shapes = [type_.static_shape for type_ in types]
    fits = all(type_.dtype is DType.FLOAT32 and len(type_.static_shape) >= 3 for type_ in types)
    if not fits or len(types) != len(steps) or 0 in (extent for shape in shapes for extent in shape):
        return False
    if "Conv" in names:
        return shapes[-1][1] * 2 >= lanes
    return any(
        arg is not None and values[arg].lanes > 0 and (name not in _POINTWISE or _shape(values, arg) == shape)
        for name, step, shape in zip(names, steps, shapes, strict=True)
        for arg in step.args
    )


@dataclass(eq=False)
class _Builder:
    """What is declared so far.

    Attributes:
        values: All values.
        lanes: How many channels a block has.
        rank: Of the plain tensors.
        made: Blocked results of steps, by number.
        given: Placeholders, by what they are.
    """

    values: Sequence[RegionValue]
    lanes: int
    rank: int
    made: dict[int, Tensor] = field(default_factory=dict)
    given: dict[Tensor, Source] = field(default_factory=dict)
    _known: dict[tuple[int, SourceForm], Tensor] = field(default_factory=dict)
    _count: Counter[str] = field(default_factory=Counter)

    def add(self, step: Step) -> None:
        """Declare a step.

        Raises:
            _NotBlockedError: It cannot be.
        """
        name = step_name(step, self._count)
        match str(step.op):
            case "Conv":
                made = self._convolution(step, name)
            case found if found in _WINDOWED:
                made = self._pool(step, name)
            case found if found in _GLOBAL:
                made = blocked_global_pool(self._outer(step), name, found == "GlobalMaxPool")
            case found if found in _POINTWISE:
                made = self._pointwise(step, name)
            case _:
                raise _NotBlockedError
        self.made[step.outputs[0]] = made

    def _convolution(self, step: Step, name: str) -> Tensor:
        described = compute_call_of(step.call, name)
        x, weight = described.input(0), self._constant(step.args[1])
        groups, windows = described.integer("group"), windows_of(described, x.shape[2:], weight.shape[2:])
        bias = self._constant(step.args[2]) if described.has_input(2) else None
        inner = name if bias is None else f"{name}.conv"
        channels, lanes = x.shape[1], self.lanes
        if groups == channels == weight.shape[0] and groups > 1:
            packed = self._packed(pack_depthwise_weight(weight, lanes))
            found = depthwise_convolution(self._outer(step), packed, windows, inner)
        elif groups == 1 and channels <= _FEW_CHANNELS:
            packed = self._packed(pack_weight_of_plain(weight, lanes))
            found = convolution_of_plain(self._outer(step, SourceForm.PLAIN), packed, windows, inner)
        else:
            weight, groups = self._merged_groups(weight, groups)
            blocks = blocks_of_groups(channels, weight.shape[0], groups, lanes, lanes)
            if blocks is None:
                raise _NotBlockedError
            packed = self._packed(pack_weight(weight, lanes, lanes, groups))
            found = blocked_convolution(self._outer(step), packed, windows, inner, blocks)
        return (
            found if bias is None else blocked_bias(found, self._packed(blocked_array(bias, lanes, 0)), name)
        )

    def _merged_groups(self, weight: Array, groups: int) -> tuple[Array, int]:
        """Weights of fewer groups, so that blocks lie in whole groups; products with zeros are the price."""
        for merged in range(1, min(groups, _MOST_MERGED) + 1):
            channels = weight.shape[1] * groups
            fits = blocks_of_groups(channels, weight.shape[0], groups // merged, self.lanes, self.lanes)
            if groups % merged == 0 and fits is not None:
                return with_merged_groups(weight, groups, merged), groups // merged
        return weight, groups

    def _pool(self, step: Step, name: str) -> Tensor:
        described = compute_call_of(step.call, name)
        windows = windows_of(described, described.input(0).shape[2:], described.integers("kernel_shape"))
        if str(step.op) == "MaxPool":
            return blocked_max_pool(self._outer(step), windows, name)
        with_padding = bool(described.integer("count_include_pad"))
        return blocked_average_pool(self._outer(step), windows, with_padding, name)

    def _pointwise(self, step: Step, name: str) -> Tensor:
        described = compute_call_of(step.call, name)
        inputs = tuple(None if arg is None else self._broadcast(arg) for arg in step.args)
        type_ = TensorType(blocked_shape(described.shape, self.lanes), DType.FLOAT32)
        constants = tuple(None if arg is None else self._scalar(arg) for arg in step.args)
        call: ComputeCall = replace(described, inputs=inputs, output_types=(type_,), constants=constants)
        return compute(call)[0]

    def _scalar(self, number: int) -> Array | None:
        constant = self.values[number].constant
        return constant if constant is not None and constant.size == 1 else None

    def _broadcast(self, number: int) -> Tensor:
        """An argument that may be stretched, in a form that is stretched alike in blocks."""
        if number in self.made:
            return self.made[number]
        value, shape = self.values[number], _shape(self.values, number)
        if value.type.dtype is not DType.FLOAT32 or len(shape) > self.rank:
            raise _NotBlockedError
        if all(extent == 1 for extent in shape):
            return self._given(number, SourceForm.PLAIN, shape)
        full = (1,) * (self.rank - len(shape)) + shape
        if full[1] == 1:
            return self._given(number, SourceForm.ONE_CHANNEL, (*full, 1))
        if value.constant is not None:
            return self._packed(blocked_array(value.constant.reshape(full), self.lanes))
        if full != shape:
            raise _NotBlockedError
        return self._given(number, SourceForm.BLOCKED, blocked_shape(shape, self.lanes))

    def _outer(self, step: Step, form: SourceForm = SourceForm.BLOCKED) -> Tensor:
        """The tensor that windows slide over, which comes from outside the group."""
        number = step.args[0]
        if number is None or number in self.made or self.values[number].constant is not None:
            raise _NotBlockedError
        shape = _shape(self.values, number)
        return self._given(
            number, form, shape if form is SourceForm.PLAIN else blocked_shape(shape, self.lanes)
        )

    def _given(self, number: int, form: SourceForm, shape: tuple[int, ...]) -> Tensor:
        if (number, form) not in self._known:
            constant = self.values[number].constant
            if constant is not None:
                return self._packed(constant.reshape(shape))
            made = placeholder(shape, DType.FLOAT32, f"x{len(self.given)}")
            self._known[number, form] = made
            self.given[made] = Source(number, form)
        return self._known[number, form]

    def _constant(self, number: int | None) -> Array:
        constant = None if number is None else self.values[number].constant
        if constant is None:
            raise _NotBlockedError
        return constant

    def _packed(self, array: Array) -> Tensor:
        made = placeholder(array.shape, DType.FLOAT32, f"c{len(self.given)}", {"constant": 1})
        self.given[made] = Source(-1, SourceForm.PLAIN, np.require(array, requirements="C"))
        return made


def with_merged_groups(weight: Array, groups: int, merged: int) -> Array:
    """Weights (M, C / groups, taps ...) of a convolution as those of one with fewer groups, with zeros.

    Args:
        weight: The weights.
        groups: How many groups there are.
        merged: How many of them become one.
    """
    if merged == 1:
        return weight
    made, read, *taps = weight.shape
    own = weight.reshape(groups // merged, merged, made // groups, read, *taps)
    wide = np.zeros((groups // merged, merged, made // groups, merged, read, *taps), weight.dtype)
    for place in range(merged):
        wide[:, place, :, place] = own[:, place]
    return wide.reshape(made, merged * read, *taps)


def _shape(values: Sequence[RegionValue], number: int) -> tuple[int, ...]:
    return values[number].type.static_shape
