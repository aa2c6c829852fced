"""ReverseSequence."""

from __future__ import annotations

from collections.abc import Sequence

from intarsia.ir import DType
from intarsia.native.te.compute import compute
from intarsia.native.te.expression import Expression
from intarsia.native.te.functions import select
from intarsia.native.te.operators.compute_call import ComputeCall
from intarsia.native.te.operators.compute_rule import compute_rule
from intarsia.native.te.operators.index_arithmetic import clamped, front
from intarsia.native.te.tensor import Tensor


@compute_rule("ReverseSequence")
def reverse_sequence(call: ComputeCall) -> Sequence[Tensor]:
    """Declare each sequence with its first `length` steps reversed; the steps after them stay."""
    x, lengths = call.input(0), call.input(1)
    batch = front(call.integer("batch_axis", 1), len(x.shape))
    time = front(call.integer("time_axis", 0), len(x.shape))
    call.refuse_beyond(1, x.shape[time], "the length")

    def element(*i: Expression) -> Expression:
        length = lengths[i[batch]].astype(DType.INT64)
        step = clamped(select(i[time] < length, length - 1 - i[time], i[time]), x.shape[time])
        return x[(*i[:time], step, *i[time + 1 :])]

    return [compute(call.shape, element, call.name)]
