"""intarsia::counted_boxes: the boxes that NonMaxSuppression keeps, and how many (op/counted_rows_op)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from intarsia.ir import DType
from intarsia.ir.prim_func import Allocate, Block, Buffer, For, LoopVar, MemoryScope, Statement
from intarsia.native.te.expression import Expression
from intarsia.native.te.functions import (
    const,
    equal,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    minimum,
    select,
)
from intarsia.native.te.operators.compute_call import ComputeCall
from intarsia.native.te.operators.compute_rule import compute_rule
from intarsia.native.te.operators.index_arithmetic import ZERO, clamped, scaled
from intarsia.native.te.operators.loop_nest import declare_written, load, loop_nest, store, when
from intarsia.native.te.tensor import Tensor
from intarsia.op.counted_rows_op import BOX_WIDTH

_SKIPPED_AT_ONCE: Final = 16
"""Iterations of a loop that one condition skips: loop functions have no break."""

ONE = const(1, DType.INT64)


@compute_rule("intarsia::counted_boxes")
def counted_boxes(call: ComputeCall) -> Sequence[Tensor]:
    """Declare the suppression: merge sort of each class, then selection of boxes that overlap none before.

    Of equal scores the box that stands first comes first, as in onnxruntime and onnx's reference.
    """
    return [_Suppression(call).result()]


@dataclass(frozen=True, eq=False)
class _Suppression:
    """Builds the loops of one call.

    Attributes:
        call: The call.
    """

    call: ComputeCall

    def result(self) -> Tensor:
        """Return the tensor that the loops write."""
        scores = self.call.input(1)
        start = store(self._out, (ZERO,), ZERO)
        batches, classes, boxes = scores.shape
        if not (batches and classes and boxes and self._most):
            return declare_written(self._out, self._inputs, start)
        body = loop_nest("o", (batches, classes), lambda o: self._class(*o))
        return declare_written(self._out, self._inputs, Block((start, body)))

    @property
    def _inputs(self) -> list[Tensor]:
        return [self.call.input(position) for position in range(5)]

    @property
    def _out(self) -> Buffer:
        return Buffer(self.call.name, self.call.shape, DType.INT64)

    @property
    def _boxes(self) -> int:
        return self.call.input(1).shape[2]

    @property
    def _most(self) -> int:
        return self.call.integer("most")

    def _scratch(self, name: str, *shape: int) -> Buffer:
        return Buffer(f"{self.call.name}.{name}", shape, DType.INT64, MemoryScope.THREAD)

    def _class(self, batch: Expression, klass: Expression) -> Statement:
        """Build the statement that keeps boxes of one class."""
        orders = [self._scratch(name, self._boxes) for name in ("even", "odd")]
        names = ("candidates", "left", "right", "taken", "first", "keep")
        scalars = {name: self._scratch(name) for name in names}
        count = scalars["candidates"]
        statements = [self._candidates(orders[0], count, batch, klass)]
        width, passes = 1, 0
        while width < self._boxes:
            source, target = orders[passes % 2], orders[(passes + 1) % 2]
            statements.append(self._merge(source, target, width, scalars, batch, klass, passes))
            width, passes = width * 2, passes + 1
        statements.append(self._select(orders[passes % 2], scalars, batch, klass))
        body: Statement = Block(tuple(statements))
        for buffer in (*orders, *scalars.values()):
            body = Allocate(buffer, body)
        return body

    def _candidates(self, order: Buffer, count: Buffer, batch: Expression, klass: Expression) -> Statement:
        """Build the list of the boxes whose score is above the threshold, in order."""
        scores, threshold = self.call.input(1), self.call.input(4)
        variable = LoopVar("s")
        box, count_so_far = Expression(variable), load(count, ())
        more = ONE
        if self.call.integer("filtered"):
            limit = threshold[(ZERO,) * len(threshold.shape)]
            more = select(scores[batch, klass, box] > limit, ONE, ZERO)
        step = Block((store(order, (count_so_far,), box), store(count, (), count_so_far + more)))
        return Block((store(count, (), ZERO), For(variable, self._boxes, step)))

    def _merge(
        self,
        source: Buffer,
        target: Buffer,
        width: int,
        scalars: dict[str, Buffer],
        batch: Expression,
        klass: Expression,
        number: int,
    ) -> Statement:
        """Build a merge of sorted runs of a width into runs of twice that; it is stable."""
        scores = self.call.input(1)
        left, right = scalars["left"], scalars["right"]
        count = load(scalars["candidates"], ())
        run, position = LoopVar(f"u{number}"), LoopVar(f"p{number}")
        low = scaled(Expression(run), 2 * width)
        middle, high = minimum(low + width, count), minimum(low + 2 * width, count)
        at = low + Expression(position)

        def candidate(pointer: Buffer) -> Expression:
            return load(source, (clamped(minimum(load(pointer, ()), count - 1), self._boxes),))

        first, second = candidate(left), candidate(right)
        is_higher = scores[batch, klass, second] > scores[batch, klass, first]
        is_left = logical_and(
            load(left, ()) < middle,
            logical_or(logical_not(load(right, ()) < high), logical_not(is_higher)),
        )
        step = select(is_left, ONE, ZERO)
        # both pointers move after both have been read: `step` reads them, so that it is kept
        kept = scalars["keep"]
        taken = Block(
            (
                store(kept, (), step),
                store(target, (at,), select(is_left, first, second)),
                store(left, (), load(left, ()) + load(kept, ())),
                store(right, (), load(right, ()) + 1 - load(kept, ())),
            )
        )
        merged = Block(
            (
                store(left, (), low),
                store(right, (), middle),
                For(position, min(2 * width, self._boxes), when(at < high, taken)),
            )
        )
        return For(run, -(-self._boxes // (2 * width)), when(low < count, merged))

    def _select(
        self, order: Buffer, scalars: dict[str, Buffer], batch: Expression, klass: Expression
    ) -> Statement:
        """Build the selection of boxes from the highest score on, unless they overlap one that was taken."""
        out, taken, keep = self._out, scalars["taken"], scalars["keep"]
        total, count = load(out, (ZERO,)), load(scalars["candidates"], ())
        limit = self.call.input(2)
        most = minimum(limit[(ZERO,) * len(limit.shape)].astype(DType.INT64), self._most)

        def wanted(position: Expression) -> Expression:
            return logical_and(position < count, load(taken, ()) < most)

        def candidate(position: Expression) -> Statement:
            box = load(order, (position,))
            begin = scaled(total, BOX_WIDTH, 1)
            row = [
                store(out, (begin + axis if axis else begin,), value)
                for axis, value in enumerate((batch, klass, box))
            ]
            grown = (store(out, (ZERO,), total + 1), store(taken, (), load(taken, ()) + 1))
            compared = _in_blocks(
                "e",
                self._most,
                lambda at: logical_and(at < load(taken, ()), equal(load(keep, ()), 1)),
                lambda at: self._compare(box, at, scalars, batch),
            )
            is_kept = equal(load(keep, ()), 1)
            return Block((store(keep, (), ONE), compared, when(is_kept, Block((*row, *grown)))))

        loops = _in_blocks("k", self._boxes, wanted, candidate)
        return Block((store(taken, (), ZERO), store(scalars["first"], (), total), loops))

    def _compare(
        self, box: Expression, at: Expression, scalars: dict[str, Buffer], batch: Expression
    ) -> Statement:
        row = load(scalars["first"], ()) + at
        other = load(self._out, (scaled(row, BOX_WIDTH, BOX_WIDTH),))
        threshold = self.call.input(3)
        limit = threshold[(ZERO,) * len(threshold.shape)]
        overlaps = self._overlaps(self._sides(batch, box), self._sides(batch, other), limit)
        return store(scalars["keep"], (), select(overlaps, ZERO, ONE))

    def _sides(self, batch: Expression, box: Expression) -> list[tuple[Expression, Expression]]:
        """Return the least and the largest coordinate along both axes."""
        boxes = self.call.input(0)
        index = clamped(box, self._boxes)
        numbers = [boxes[batch, index, const(axis, DType.INT64)] for axis in range(4)]
        if self.call.integer("center_point_box"):
            halves = [numbers[axis + 2] * 0.5 for axis in (0, 1)]
            return [(numbers[axis] - halves[axis], numbers[axis] + halves[axis]) for axis in (0, 1)]
        return [
            (minimum(*pair), maximum(*pair)) for pair in ((numbers[1], numbers[3]), (numbers[0], numbers[2]))
        ]

    def _overlaps(
        self,
        first: list[tuple[Expression, Expression]],
        second: list[tuple[Expression, Expression]],
        limit: Expression,
    ) -> Expression:
        """Return whether the intersection over the union is above the limit; every operation is rounded.

        Clamping areas to 0 changes nothing, since others never overlap; it keeps the product from fusing with
        the sum after it, which would round once less and decide ties differently.
        """
        zero = const(0.0, DType.FLOAT32)
        edges = [(maximum(a[0], b[0]), minimum(a[1], b[1])) for a, b in zip(first, second, strict=True)]
        common = maximum((edges[0][1] - edges[0][0]) * (edges[1][1] - edges[1][0]), zero)
        areas = [maximum((x[1] - x[0]) * (y[1] - y[0]), zero) for x, y in (first, second)]
        union = areas[0] + areas[1] - common
        return logical_and(
            *(low < high for low, high in edges),
            *(zero < value for value in (common, *areas, union)),
            limit < common / union,
        )


def _in_blocks(name: str, extent: int, wanted: object, body: object) -> Statement:
    """Build a loop whose blocks are skipped where their first iteration is not wanted."""
    assert callable(wanted)
    assert callable(body)
    size = min(extent, _SKIPPED_AT_ONCE)
    outer, inner = LoopVar(f"{name}o"), LoopVar(f"{name}i")
    begin = scaled(Expression(outer), size)
    position = begin + Expression(inner)
    is_there = wanted(position) if extent % size == 0 else logical_and(wanted(position), position < extent)
    block = For(inner, size, when(is_there, body(clamped(position, extent) if extent % size else position)))
    return For(outer, -(-extent // size), when(wanted(begin), block))
