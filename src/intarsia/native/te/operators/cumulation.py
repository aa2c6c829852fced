"""CumSum and CumProd."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Final

from intarsia.ir import DType
from intarsia.ir.prim_func import Allocate, Block, Buffer, For, ForKind, LoopVar, MemoryScope, Statement
from intarsia.native.te.expression import Expression
from intarsia.native.te.functions import const
from intarsia.native.te.operators.compute_call import ComputeCall
from intarsia.native.te.operators.compute_rule import compute_rule
from intarsia.native.te.operators.float32_arithmetic import in_float32
from intarsia.native.te.operators.index_arithmetic import Indices, front, scaled
from intarsia.native.te.operators.loop_nest import declare_written, load, loop_nest, store, unrolled_nest
from intarsia.native.te.tensor import Tensor

_LINES: Final = 8
"""Number of lines along the last axis that are added up together: an addition takes three or four cycles."""
_SHORT_ROW: Final = 64
"""Maximum number of prefixes that stay in registers: eight vectors of AVX2. In longer rows, enough vectors
follow each other that none waits for its store."""


@compute_rule("CumProd", "CumSum")
@in_float32
def cumulation(call: ComputeCall) -> Sequence[Tensor]:
    """Declare prefix sums or products along an axis; perhaps exclusive, or from the end."""
    x = call.input(0)
    axis = front((call.known_ints(1) or (0,))[0], len(x.shape))
    result = Buffer(call.name, x.shape, x.dtype)
    if 0 in x.shape:
        return [declare_written(result, [x], Block(()))]
    prefixes = _Prefixes(
        x,
        result,
        axis,
        is_sum=call.op_name == "CumSum",
        is_exclusive=bool(call.integer("exclusive", 0)),
        is_reversed=bool(call.integer("reverse", 0)),
    )
    if axis > 0 and axis == len(x.shape) - 1:
        return [declare_written(result, [x], loop_nest("o", x.shape[: axis - 1], prefixes.all_lines))]
    return [declare_written(result, [x], loop_nest("o", x.shape[:axis], prefixes.line))]


@dataclass(frozen=True)
class _Prefixes:
    """Statements that compute the prefixes of a tensor along an axis.

    Attributes:
        x: The tensor.
        result: Buffer of the prefixes.
        axis: Axis that is added or multiplied up.
        is_sum: Whether terms are added, not multiplied.
        is_exclusive: Whether a prefix ends before its own position.
        is_reversed: Whether prefixes begin at the end of the axis.
        step: Number of the step along the axis.
    """

    x: Tensor
    result: Buffer
    axis: int
    is_sum: bool
    is_exclusive: bool
    is_reversed: bool
    step: LoopVar = field(default_factory=lambda: LoopVar("s"))

    @property
    def _first(self) -> int:
        """Index of the first step."""
        return self.x.shape[self.axis] - 1 if self.is_reversed else 0

    def _position_at(self, steps: int, outer: Indices, inner: Indices) -> Indices:
        """Return the index that is `steps` steps after that of `step`."""
        sign = -1 if self.is_reversed else 1
        return (*outer, scaled(Expression(self.step), sign, self._first + sign * steps), *inner)

    def _begin(self, outer: Indices, inner: Indices, so_far: Buffer, at_sum: Indices) -> Statement:
        at = (*outer, const(self._first, DType.INT64), *inner)
        neutral = const(0 if self.is_sum else 1, self.x.dtype)
        value = neutral if self.is_exclusive else self.x[at]
        return Block((store(so_far, at_sum, value), store(self.result, at, value)))

    def _advance(self, outer: Indices, inner: Indices, so_far: Buffer, at_sum: Indices) -> Statement:
        at, before = self._position_at(1, outer, inner), self._position_at(0, outer, inner)
        more, prefix = self.x[before] if self.is_exclusive else self.x[at], load(so_far, at_sum)
        value = prefix + more if self.is_sum else prefix * more
        return Block((store(so_far, at_sum, value), store(self.result, at, load(so_far, at_sum))))

    def _begin_row(self, outer: Indices, inner: Indices) -> Statement:
        at = (*outer, const(self._first, DType.INT64), *inner)
        neutral = const(0 if self.is_sum else 1, self.x.dtype)
        return store(self.result, at, neutral if self.is_exclusive else self.x[at])

    def _advance_row(self, outer: Indices, inner: Indices) -> Statement:
        at, before = self._position_at(1, outer, inner), self._position_at(0, outer, inner)
        more, prefix = self.x[before] if self.is_exclusive else self.x[at], load(self.result, before)
        return store(self.result, at, prefix + more if self.is_sum else prefix * more)

    def _steps(self, body: Statement) -> Statement:
        return For(self.step, self.x.shape[self.axis] - 1, body)

    def line(self, outer: Indices) -> Statement:
        """Return the steps along the axis, each for all positions of the axes after it.

        The prefixes of a short row stay in registers: reading them back would wait for their stores.
        """
        within = self.x.shape[self.axis + 1 :]
        if prod(within) > _SHORT_ROW:
            next_row = loop_nest("i", within, lambda i: self._advance_row(outer, i), in_lanes=True)
            first_row = loop_nest("i", within, lambda i: self._begin_row(outer, i), in_lanes=True)
            return Block((first_row, self._steps(next_row)))
        so_far = self._running(within)

        def row(body: Callable[[Indices, Indices, Buffer, Indices], Statement]) -> Statement:
            return unrolled_nest("i", within, lambda i: body(outer, i, so_far, i))

        return Allocate(so_far, Block((row(self._begin), self._steps(row(self._advance)))))

    def _running(self, shape: Sequence[int]) -> Buffer:
        """Return a buffer in registers for prefixes."""
        return Buffer(f"{self.result.name}.so_far", tuple(shape), self.x.dtype, MemoryScope.REGISTER)

    def _lines_at(self, outer: Indices, begin_at: Expression, count: int) -> Statement:
        """Return `count` lines in one loop over their steps: each step waits for the one before it."""
        number, so_far = LoopVar("r"), self._running((count,))
        line = (Expression(number),)
        at = (*outer, begin_at + line[0])
        first = For(number, count, self._begin(at, (), so_far, line), ForKind.UNROLLED)
        following = For(number, count, self._advance(at, (), so_far, line), ForKind.UNROLLED)
        return Allocate(so_far, Block((first, self._steps(following))))

    def all_lines(self, outer: Indices) -> Statement:
        """Return the lines along the last axis, several at a time."""
        count = self.x.shape[self.axis - 1]
        blocks, rest = divmod(count, _LINES)
        block = LoopVar("b")
        parts: list[Statement] = []
        if blocks:
            parts.append(For(block, blocks, self._lines_at(outer, Expression(block) * _LINES, _LINES)))
        if rest:
            parts.append(self._lines_at(outer, const(count - rest, DType.INT64), rest))
        return Block(tuple(parts))
