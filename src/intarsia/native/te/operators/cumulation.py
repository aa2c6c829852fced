"""CumSum and CumProd."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from intarsia.ir import DType
from intarsia.ir.prim_func import Block, Buffer, For, ForKind, LoopVar, Statement
from intarsia.native.te.expression import Expression
from intarsia.native.te.functions import const
from intarsia.native.te.operators.compute_call import ComputeCall
from intarsia.native.te.operators.compute_rule import compute_rule
from intarsia.native.te.operators.float32_arithmetic import in_float32
from intarsia.native.te.operators.index_arithmetic import Indices, front, scaled
from intarsia.native.te.operators.loop_nest import declare_written, load, loop_nest, store
from intarsia.native.te.tensor import Tensor

_LINES: Final = 8
"""Number of lines along the last axis that are added up together: an addition takes three or four cycles."""


@compute_rule("CumProd", "CumSum")
@in_float32
def cumulation(call: ComputeCall) -> Sequence[Tensor]:
    """Declare prefix sums or products along an axis; perhaps exclusive, or from the end."""
    x = call.input(0)
    axis = front((call.known_ints(1) or (0,))[0], len(x.shape))
    if 0 in x.shape:
        return [declare_written(Buffer(call.name, x.shape, x.dtype), [x], Block(()))]
    is_sum = call.op_name == "CumSum"
    is_exclusive = bool(call.integer("exclusive", 0))
    sign, first = (-1, x.shape[axis] - 1) if call.integer("reverse", 0) else (1, 0)
    result = Buffer(call.name, x.shape, x.dtype)
    step = Expression(LoopVar("s"))

    def position_at(steps: int, outer: Indices, inner: Indices) -> Indices:
        """Return the index that is `steps` steps after that of `step`."""
        return (*outer, scaled(step, sign, first + sign * steps), *inner)

    def begin(outer: Indices, inner: Indices) -> Statement:
        at = (*outer, const(first, DType.INT64), *inner)
        return store(result, at, const(0 if is_sum else 1, x.dtype) if is_exclusive else x[at])

    def advance(outer: Indices, inner: Indices) -> Statement:
        at = position_at(1, outer, inner)
        so_far = load(result, position_at(0, outer, inner))
        more = x[position_at(0, outer, inner)] if is_exclusive else x[at]
        return store(result, at, so_far + more if is_sum else so_far * more)

    def line(outer: Indices) -> Statement:
        within = x.shape[axis + 1 :]
        next_row = loop_nest("i", within, lambda i: advance(outer, i), in_lanes=True)
        first_row = loop_nest("i", within, lambda i: begin(outer, i), in_lanes=True)
        return Block((first_row, For(LoopVar("s"), x.shape[axis] - 1, next_row)))

    def lines_at(outer: Indices, begin_at: Expression, count: int) -> Statement:
        """Return `count` lines in one loop over their steps: each step waits for the one before it."""
        number = LoopVar("r")
        at = (*outer, begin_at + Expression(number))
        first = For(number, count, begin(at, ()), ForKind.UNROLLED)
        following = For(number, count, advance(at, ()), ForKind.UNROLLED)
        return Block((first, For(LoopVar("s"), x.shape[axis] - 1, following)))

    def all_lines(outer: Indices) -> Statement:
        count = x.shape[axis - 1]
        blocks, rest = divmod(count, _LINES)
        block = LoopVar("b")
        whole = For(block, blocks, lines_at(outer, Expression(block) * _LINES, _LINES))
        last = lines_at(outer, const(count - rest, DType.INT64), rest) if rest else Block(())
        return Block((whole, last))

    if axis > 0 and axis == len(x.shape) - 1:
        return [declare_written(result, [x], loop_nest("o", x.shape[: axis - 1], all_lines))]
    return [declare_written(result, [x], loop_nest("o", x.shape[:axis], line))]
