"""Convolutions of one value become one convolution with more output channels."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from intarsia.ir import ABSENT, Call, Constant, Function, IRModule, Op
from intarsia.passes.parallel.channel_arguments import joined
from intarsia.passes.parallel.parallel_branches import ParallelOperator, check_branch_count, combine_parallel
from intarsia.transform import FunctionPass, PassContext, register_pass


@register_pass
@dataclass(frozen=True)
class CombineParallelConv2D(FunctionPass, opt_level=4, required=("InferType",)):
    """Combines convolutions of one input, and equal operators after them, and splits the result.

    They must have the same kernel shape, strides, pads and dilations, one group, and constant weights and
    biases; any number of spatial axes. What is combined is evaluated in one scope on one device. Branches
    continue together through elementwise operators and BatchNormalization as long as these are the same in
    each, with constants per channel (source: the pass of that name in TVM, whose level and threshold this
    has). It pays where small convolutions leave the machine idle, as in Inception; a tuner can measure that.

    Raises:
        UsageError: `min_num_branches` is below 2.

    Attributes:
        min_num_branches: Smallest number of convolutions to combine.

    Before:
        def @main(%x: Tensor[(1, 2, 4, 4), float32]) {
          %a = Relu(Conv(%x, meta[Constant][0]));
          %b = Relu(Conv(%x, meta[Constant][1]));
          %c = Relu(Conv(%x, meta[Constant][2]));
          (%a, %b, %c)
        }
    After:
        def @main(%x: Tensor[(1, 2, 4, 4), float32]) {
          %s = Split(Relu(Conv(%x, meta[Constant][3])), meta[Constant][4], axis=1, outputs=3);
          (%s.0, %s.1, %s.2)
        }
    Constants:
        zeros(1, 2, 1, 1) zeros(2, 2, 1, 1) zeros(3, 2, 1, 1) zeros(6, 2, 1, 1) [1, 2, 3]
    """

    min_num_branches: int = 3

    def __post_init__(self) -> None:
        """Check the option."""
        check_branch_count(self.min_num_branches)

    def transform_function(self, function: Function, mod: IRModule, ctx: PassContext) -> Function:
        """The function with parallel convolutions combined; linear in the program."""
        return combine_parallel(function, _CONVOLUTION, self.min_num_branches, ctx)


def _agreement(call: Call) -> Hashable | None:
    """Everything that decides what a convolution computes, but its weights and output channels."""
    if not isinstance(call.op, Op) or call.op.name != "Conv" or call.op.domain or len(call.args) < 2:
        return None
    weight, attrs = call.args[1], call.attrs
    if not isinstance(weight, Constant) or weight.data.ndim < 3 or attrs.get("group", 1) != 1:
        return None
    kernel = weight.data.shape[2:]
    if attrs.get("kernel_shape", kernel) != kernel or not _has_constant_bias(call):
        return None
    ones, zeros = (1,) * len(kernel), (0,) * (2 * len(kernel))
    geometry = (attrs.get("strides", ones), attrs.get("dilations", ones), attrs.get("pads", zeros))
    padding = attrs.get("auto_pad", "NOTSET")
    return (call.op.virtual_device, weight.data.shape[1:], weight.data.dtype, *geometry, padding)


def _has_constant_bias(call: Call) -> bool:
    return all(isinstance(bias, Constant) or bias.checked_type == ABSENT for bias in call.args[2:])


def _outputs(call: Call) -> int:
    weight = call.args[1]
    assert isinstance(weight, Constant)
    return int(weight.data.shape[0])


def _arguments(calls: Sequence[Call]) -> tuple[Constant, ...]:
    """The weights below each other, and the biases if some call has one."""
    weights = [call.args[1] for call in calls]
    constants = [weight for weight in weights if isinstance(weight, Constant)]
    weight = joined(constants, [item.data for item in constants], 0)
    given = [call.args[2] if len(call.args) > 2 else None for call in calls]
    biases = [bias for bias in given if isinstance(bias, Constant)]
    if not biases:
        return (weight,)
    arrays = [
        bias.data if isinstance(bias, Constant) else np.zeros(_outputs(call), weight.data.dtype)
        for bias, call in zip(given, calls, strict=True)
    ]
    return weight, joined(biases, arrays, 0)


_CONVOLUTION = ParallelOperator(_agreement, _outputs, _arguments, channel_axis=1)
