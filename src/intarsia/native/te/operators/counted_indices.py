"""intarsia::counted_indices: the indices of nonzero elements, and their number (op/counted_rows_op)."""

from __future__ import annotations

from collections.abc import Sequence

from intarsia.ir import DType
from intarsia.ir.prim_func import Block, Buffer, Statement
from intarsia.native.te.expression import Expression
from intarsia.native.te.functions import const, not_equal, select
from intarsia.native.te.operators.compute_call import ComputeCall
from intarsia.native.te.operators.compute_rule import compute_rule
from intarsia.native.te.operators.index_arithmetic import ZERO, Indices, scaled
from intarsia.native.te.operators.loop_nest import declare_written, load, loop_nest, store
from intarsia.native.te.tensor import Tensor


@compute_rule("intarsia::counted_indices")
def counted_indices(call: ComputeCall) -> Sequence[Tensor]:
    """Declare the indices: those of every element are written, and the next write overwrites those of a 0."""
    x = call.input(0)
    rank = len(x.shape)
    buffer = Buffer(call.name, call.shape, DType.INT64)
    count = load(buffer, (ZERO,))

    def element(i: Indices) -> Statement:
        row = [store(buffer, (scaled(count, rank, 1 + axis),), index) for axis, index in enumerate(i)]
        more = select(_holds(x[i]), const(1, DType.INT64), const(0, DType.INT64))
        return Block((*row, store(buffer, (ZERO,), count + more)))

    start = store(buffer, (ZERO,), ZERO)
    body = Block((start, loop_nest("i", x.shape, element))) if 0 not in x.shape else start
    return [declare_written(buffer, [x], body)]


def _holds(value: Expression) -> Expression:
    return value if value.dtype is DType.BOOL else not_equal(value, const(0, value.dtype))
