"""Transpose, and Intarsia's layout_transform."""

from __future__ import annotations

from collections.abc import Sequence

from intarsia.native.te.compute import compute
from intarsia.native.te.operators.compute_call import ComputeCall
from intarsia.native.te.operators.compute_rule import compute_rule
from intarsia.native.te.tensor import Tensor
from intarsia.op.intarsia_ops import layout_permutation


@compute_rule("Transpose")
def transpose(call: ComputeCall) -> Sequence[Tensor]:
    """Declare axes in another order; reversed if none is given."""
    x = call.input(0)
    order = call.integers("perm", tuple(reversed(range(len(x.shape)))))
    return [transposed(x, order, call.name)]


@compute_rule("intarsia::layout_transform")
def layout_transform(call: ComputeCall) -> Sequence[Tensor]:
    """Declare axes in the order of the letters of the layouts."""
    order = layout_permutation(call.text("src_layout"), call.text("dst_layout"))
    return [transposed(call.input(0), order, call.name)]


def transposed(x: Tensor, order: Sequence[int], name: str) -> Tensor:
    """Declare a tensor whose axis k is axis order[k] of x."""
    inverse = [order.index(axis) for axis in range(len(order))]
    return compute([x.shape[axis] for axis in order], lambda *i: x[tuple(i[at] for at in inverse)], name)
