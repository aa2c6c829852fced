"""Gather, GatherElements and GatherND: elements at indices that another tensor holds."""

from __future__ import annotations

from collections.abc import Sequence

from intarsia.native.te.compute import compute
from intarsia.native.te.expression import Expression
from intarsia.native.te.operators.compute_call import ComputeCall
from intarsia.native.te.operators.compute_rule import compute_rule
from intarsia.native.te.operators.index_arithmetic import front, wrapped
from intarsia.native.te.tensor import Tensor


@compute_rule("Gather")
def gather(call: ComputeCall) -> Sequence[Tensor]:
    """Declare slices of an axis, selected by indices."""
    x, indices = call.input(0), call.input(1)
    axis = front(call.integer("axis", 0), len(x.shape))
    behind = axis + len(indices.shape)
    call.refuse_outside(1, x.shape[axis : axis + 1])

    def element(*i: Expression) -> Expression:
        return x[(*i[:axis], wrapped(indices[i[axis:behind]], x.shape[axis]), *i[behind:])]

    return [compute(call.shape, element, call.name)]


@compute_rule("GatherElements")
def gather_elements(call: ComputeCall) -> Sequence[Tensor]:
    """Declare at each position the element that the index at that position selects along an axis."""
    x, indices = call.input(0), call.input(1)
    axis = front(call.integer("axis", 0), len(x.shape))
    call.refuse_outside(1, x.shape[axis : axis + 1])

    def element(*i: Expression) -> Expression:
        return x[(*i[:axis], wrapped(indices[i], x.shape[axis]), *i[axis + 1 :])]

    return [compute(call.shape, element, call.name)]


@compute_rule("GatherND")
def gather_nd(call: ComputeCall) -> Sequence[Tensor]:
    """Declare slices at index tuples, the last axis of the indices; leading axes may be a batch of both."""
    x, indices = call.input(0), call.input(1)
    batch, count, rank = call.integer("batch_dims", 0), indices.shape[-1], len(indices.shape) - 1
    call.refuse_outside(1, x.shape[batch : batch + count])

    def element(*i: Expression) -> Expression:
        place = [wrapped(indices[(*i[:rank], k)], x.shape[batch + k]) for k in range(count)]
        return x[(*i[:batch], *place, *i[rank:])]

    return [compute(call.shape, element, call.name)]
