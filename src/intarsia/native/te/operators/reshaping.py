"""Operators whose result has the elements of the argument in the same order."""

from __future__ import annotations

from collections.abc import Sequence

from intarsia.native.te.compute import compute
from intarsia.native.te.operators.compute_call import ComputeCall
from intarsia.native.te.operators.compute_rule import compute_rule
from intarsia.native.te.operators.index_arithmetic import reshaped
from intarsia.native.te.tensor import Tensor


@compute_rule(
    "Flatten",
    "Identity",
    "Reshape",
    "Squeeze",
    "Unsqueeze",
    "intarsia::device_copy",
    "intarsia::on_device",
)
def reshape(call: ComputeCall) -> Sequence[Tensor]:
    """Declare the argument in the shape that type inference has computed."""
    return [declare_reshaped(call.input(0), call.shape, call.name)]


def declare_reshaped(x: Tensor, shape: Sequence[int], name: str) -> Tensor:
    """Declare a tensor's elements in another shape of as many."""
    return compute(shape, lambda *i: x[reshaped(i, shape, x.shape)], name)
