"""Fusion groups: steps around at most one convolution, product, pool or reduction become one kernel.

A group has one result, that of its last step; only the group reads its other values. So no path leaves a
group and returns, and a group can run when its last step could. Groups grow backwards from their last step,
as in fusion along post-dominators (TVM, OSDI 2018, section 3).
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Collection, Container, Sequence
from math import prod
from typing import Final

from intarsia.ir.loop_walk import scalar_post_order
from intarsia.ir.prim_func import Load
from intarsia.native.dag.along_sum import pays_along_sum
from intarsia.native.graph.batched_integers import BatchedStep
from intarsia.native.graph.bfloat_steps import BfloatStep
from intarsia.native.graph.block_steps import BlockStep
from intarsia.native.graph.integer_steps import IntegerStep
from intarsia.native.graph.kernel_dag import kernel_dag
from intarsia.native.graph.region_plan import RegionValue
from intarsia.native.graph.step_kind import StepKind, step_kind
from intarsia.native.graph.straight_line import KernelStep, StraightLine
from intarsia.native.te import ComputeOp, Operation, PlaceholderOp, Tensor
from intarsia.native.te.tensor import operations

_LARGEST = 64
"""Maximum number of steps in the expression of an element, counting repetitions."""
_MOST_STEPS = 40
"""Maximum number of steps of a group: stages that are not inlined are live at the same time."""

_POINTWISE, _MOVE, _INJECTIVE = StepKind.ELEMENTWISE, StepKind.MOVE, StepKind.INJECTIVE
_REDUCTION = StepKind.REDUCTION

_LEAST_ROWS: Final = 2
"""Number of rows from which panels of the right matrix are packed; unpacked, another order is read slowly."""
_LEAST_QUERIES: Final = 8
"""Number of queries from which the products of attention are one kernel: with 2 to 7, scores that are written
and read again take as long (75 drawn layers: 0.98 of the time of one kernel)."""
_MOST_ROWS: Final = 64
"""Number of rows up to which one block has all rows of a product by a single matrix."""
_LEAST_SUM: Final = 32
"""Minimum number of products of a sum along which vectors run: two vectors of the widest registers."""


def fusion_groups(
    line: StraightLine,
    alone: Container[int] = (),
    *,
    attention: bool = True,
    stored: Collection[int] = (),
    merged: Collection[int] = (),
) -> tuple[tuple[KernelStep, ...], ...]:
    """Return the steps of a region as groups in an executable order; the last step of each gives its result.

    First elementwise steps join their producers, and each other if the shape stays the same (epilogues).
    Steps with one producer join before those with several, so that branches stay together. Then elementwise
    groups join the reduction or transposition that reads them, and injective steps the elementwise group that
    reads them, if no element is computed twice (prologues). Batched products take in the moves that produce
    their matrices. Finally the two products of attention join with the softmax between them.

    Linear in the region, times log n.

    Args:
        line: The region.
        alone: Numbers of steps that are not fused.
        attention: Whether the products of attention are fused.
        stored: Numbers of steps whose results are stored, so that no later step joins them.
        merged: Numbers of the last steps of groups that join their only reader, where the rules would keep
            them apart.
    """
    groups = _Groups(line, alone, stored)
    groups.grow(groups.is_chain)
    groups.grow(groups.is_epilogue)
    groups.grow(groups.is_prologue)
    groups.grow(lambda source, end: source in merged and groups.is_inlinable(source, end))
    if attention:
        groups.grow(groups.is_attention)
    return groups.in_order()


class _Groups:
    """A partition of the steps into groups, each identified by its last step.

    Args:
        line: The region.
        alone: Numbers of steps that are not fused.
        stored: Numbers of steps whose results are stored.
    """

    def __init__(self, line: StraightLine, alone: Container[int], stored: Collection[int]) -> None:
        self._line, self._steps = line, line.steps
        self._kinds = [
            StepKind.OPAQUE if position in alone else step_kind(step)
            for position, step in enumerate(line.steps)
        ]
        self._end = list(range(len(line.steps)))
        self._members = [[position] for position in self._end]
        self._has_loops = [kind.has_loops for kind in self._kinds]
        self._times = [1] * len(line.steps)  # occurrences of a step in the expression of its group's element
        self._size = [1] * len(line.steps)
        self._reads: dict[int, Counter[int]] = {}
        producer_of = {
            number: position for position, step in enumerate(line.steps) for number in step.outputs
        }
        self._read_from = [
            tuple({producer_of[arg] for arg in step.args if arg in producer_of}) for step in line.steps
        ]
        self._readers: list[list[int]] = [[] for _ in line.steps]
        for position, producers in enumerate(self._read_from):
            for producer in producers:
                self._readers[producer].append(position)
        outside = {line.values[number].same_as for number in line.results}
        outside |= {value.same_as for number, value in enumerate(line.values) if value.same_as != number}
        self._is_kept = [not outside.isdisjoint(step.outputs) for step in line.steps]
        for position in stored:
            self._is_kept[position] = True

    def in_order(self) -> tuple[tuple[KernelStep, ...], ...]:
        """Return the groups in executable order."""
        return tuple(
            tuple(self._steps[member] for member in sorted(self._members[end]))
            for end in range(len(self._steps))
            if self._end[end] == end
        )

    def grow(self, may_join: Callable[[int, int], bool]) -> None:
        """Extend groups by the groups that they read, the last one first.

        Args:
            may_join: Predicate: whether a group may join another group, its only reader; both by last step.
        """
        for end in reversed(range(len(self._steps))):
            if self._end[end] != end:
                continue
            waiting = self._sources(self._members[end])
            heapq.heapify(waiting)
            seen: set[int] = set()
            while waiting:
                source = -heapq.heappop(waiting)
                if source in seen or self._is_kept[source] or self._kinds[source] is StepKind.OPAQUE:
                    continue
                seen.add(source)
                if self._is_read_in(source, end) and may_join(source, end):
                    for next_source in self._sources(self._members[source]):
                        heapq.heappush(waiting, next_source)
                    self._join(source, end)

    def _is_read_in(self, source: int, end: int) -> bool:
        """Return whether only `end` reads a group, and both together are small enough."""
        steps = len(self._members[source]) + len(self._members[end])
        return steps <= _MOST_STEPS and all(self._end[reader] == end for reader in self._readers[source])

    def is_chain(self, source: int, end: int) -> bool:
        """Return whether the reader is an epilogue without other computed inputs."""
        is_alone = all(len(self._read_from[reader]) == 1 for reader in self._readers[source])
        return is_alone and self.is_epilogue(source, end)

    def is_epilogue(self, source: int, end: int) -> bool:
        """Return whether the reader is an elementwise epilogue of the same shape."""
        if self._kinds[end] is not _POINTWISE or self._shape(source) != self._shape(end):
            return False
        if self._is_read_as_bytes(end):
            return False
        if not self._is_read_by(source, _POINTWISE):
            return False
        if self._has_loops[source]:
            return not self._has_loops[end]
        return self._kinds[source] is _POINTWISE and self._fits(source, end)

    def _is_read_as_bytes(self, end: int) -> bool:
        """Return whether only kernels that can dequantise read a DequantizeLinear: bytes are fewer."""
        if str(self._steps[end].op) != "DequantizeLinear" or self._is_kept[end]:
            return False
        return bool(self._readers[end]) and self._is_read_by(end, _POINTWISE, _REDUCTION)

    def is_prologue(self, source: int, end: int) -> bool:
        """Return whether a group without an anchor can be inlined into its reader without recomputation.

        A product may also read strided rows, as those of attention heads, and the elements of its right
        matrix in any order, since it packs panels of that matrix.
        """
        if self._has_loops[source] or not self._fits(source, end):
            return False
        if self._kinds[end] is not _MOVE and self._is_matrix_of_product(source):
            return True
        if self._kinds[source] is _POINTWISE:
            return self._is_read_by(source, _REDUCTION if self._has_loops[end] else _MOVE)
        if self._kinds[source] not in (_MOVE, _INJECTIVE) or self._has_loops[end]:
            return False
        is_kept_in_place = self._shape(source) == self._shape(end) and self._is_read_by(source, _POINTWISE)
        return is_kept_in_place or self._is_read_by(source, _MOVE)

    def is_inlinable(self, source: int, end: int) -> bool:
        """Return whether a group without an anchor can be inlined into its reader.

        An element that the reader uses several times may be computed as often.
        """
        is_opaque = self._kinds[end] is StepKind.OPAQUE
        return not (is_opaque or self._has_loops[source]) and self._fits(source, end)

    def is_attention(self, source: int, end: int) -> bool:
        """Return whether a group is a softmax between two batched products, or the first of the products."""
        if self._is_softmax(source):
            is_left = self._is_left_matrix(source) and self._is_product(end)
            return is_left and self._scores_of(source) is not None
        readers = self._readers[source]
        return end not in readers and any(
            self._is_softmax(reader) and self._scores_of(reader) == source for reader in readers
        )

    def _is_softmax(self, place: int) -> bool:
        return _is_softmax(self._steps[place], self._line.values)

    def _is_left_matrix(self, position: int) -> bool:
        """Return whether only batched products read a step, as the left matrix."""
        (number,), values = self._steps[position].outputs, self._line.values
        readers = [self._steps[reader] for reader in self._readers[position]]
        return all(_has_queries(step, values) and step.args[1] != number for step in readers)

    def _is_product(self, end: int) -> bool:
        """Return whether the anchor of a group is a batched product of many rows."""
        members = self._members[end]
        anchors = [self._steps[member] for member in members if self._kinds[member].has_loops]
        return len(anchors) == 1 and _has_queries(anchors[0], self._line.values)

    def _scores_of(self, softmax: int) -> int | None:
        """Return the product whose rows only this softmax reads, None if there is none."""
        (producer,) = self._read_from[softmax] or (softmax,)
        is_kept = self._is_kept[producer] or self._readers[producer] != [softmax]
        return (
            None if is_kept or self._end[producer] != producer or not self._is_product(producer) else producer
        )

    def _is_matrix_of_product(self, source: int) -> bool:
        """Return whether the products that read a move can read its source in place."""
        if self._kinds[source] is not _MOVE or len(self._members[source]) > 1:
            return False
        move, values = self._steps[source], self._line.values
        keeps = _keeps_rows(move, values)
        return all(
            self._reads_in_place(reader, source, is_left_too=keeps)
            or (not self._is_opaque(reader) and _reads_along_sum(self._steps[reader], move, values))
            for reader in self._readers[source]
        )

    def _reads_in_place(self, reader: int, source: int, *, is_left_too: bool) -> bool:
        """Return whether only products read a move, directly or through another move."""
        step, (number,) = self._steps[reader], self._steps[source].outputs
        if self._is_opaque(reader):
            return False
        if self._kinds[reader] is _MOVE:
            after = self._readers[reader]
            return all(
                self._reads_in_place(next_reader, reader, is_left_too=is_left_too) for next_reader in after
            )
        return _reads_batches(step, self._line.values) and (is_left_too or _reads_right(step, number))

    def _is_opaque(self, position: int) -> bool:
        """Return whether a step stays alone, such as a call of a library."""
        return self._kinds[position] is StepKind.OPAQUE

    def _sources(self, members: list[int]) -> list[int]:
        """Return the groups that steps read, negated, so that a min-heap yields the last one first."""
        return [-self._end[source] for member in members for source in self._read_from[member]]

    def _is_read_by(self, source: int, *kinds: StepKind) -> bool:
        return all(self._kinds[reader] in kinds for reader in self._readers[source])

    def _shape(self, position: int) -> tuple[int, ...]:
        return self._line.values[self._steps[position].outputs[0]].type.static_shape

    def _fits(self, source: int, end: int) -> bool:
        """Return whether the expression of an element stays small enough with a group inlined."""
        return self._size[end] + self._size[source] * self._times_in(source) <= _LARGEST

    def _times_in(self, source: int) -> int:
        number = self._steps[source].outputs[0]
        return sum(self._times[reader] * self._reads_of(reader)[number] for reader in self._readers[source])

    def _reads_of(self, position: int) -> Counter[int]:
        """Return how often an element of a step reads each argument, by value number."""
        if position not in self._reads:
            step = self._steps[position]
            kernel = kernel_dag((step,), self._line.values, step.outputs)
            reads = _inlined_reads(kernel.dag.outputs[0])
            names = (tensor.op.name for tensor in kernel.dag.placeholders)
            self._reads[position] = Counter(
                {source.number: reads[name] for name, source in zip(names, kernel.sources, strict=True)}
            )
        return self._reads[position]

    def _join(self, source: int, end: int) -> None:
        times = 1 if self._has_loops[source] else self._times_in(source)
        for member in self._members[source]:
            self._end[member] = end
            self._times[member] *= times
        self._size[end] += self._size[source] * times
        self._has_loops[end] |= self._has_loops[source]
        self._members[end] += self._members[source]
        self._members[source] = []


def _inlined_reads(result: Tensor) -> dict[str, int]:
    """Return the number of loads of each placeholder in an element's fully inlined expression, by name.

    Reductions, and operations without an expression, count once for each load.
    """
    order = operations((result.op,))
    paths: Counter[Operation] = Counter({result.op: 1})
    for op in reversed(order):
        if isinstance(op, PlaceholderOp):
            continue
        loads = _loads_of(op)
        for tensor in op.inputs:
            paths[tensor.op] += paths[op] * max(1, loads[tensor.buffer.name])
    return {op.name: paths[op] for op in order if isinstance(op, PlaceholderOp)}


def _loads_of(op: Operation) -> Counter[str]:
    if not isinstance(op, ComputeOp):
        return Counter()
    scalars = (scalar for body in op.bodies for scalar, _ in scalar_post_order(body))
    return Counter(scalar.buffer.name for scalar in scalars if isinstance(scalar, Load))


# Products of attention heads read their matrices in place, as parts of longer rows.


def _reads_right(step: KernelStep, number: int) -> bool:
    """Return whether a value is the right matrix of a product only."""
    return str(step.op) == "MatMul" and step.args[1] == number != step.args[0]


def _has_queries(step: KernelStep, values: Sequence[RegionValue]) -> bool:
    """Return whether a step is a product with the right number of rows for the kernel of attention."""
    return _reads_batches(step, values, _LEAST_QUERIES)


def _reads_batches(step: KernelStep, values: Sequence[RegionValue], least: int = _LEAST_ROWS) -> bool:
    """Return whether a step is a product with the right number of rows to pack panels of a moved matrix.

    Each block of rows packs the panels again, so those of a product by a single matrix must be few.
    """
    if str(step.op) != "MatMul" or isinstance(step, BatchedStep | BfloatStep | BlockStep | IntegerStep):
        return False
    left, right = (values[arg].type.static_shape for arg in step.args if arg is not None)
    if len(left) < 2 or len(right) < 2 or len(left) == 2 < len(right):
        return False
    return _rows(left, right) >= least and (len(right) > 2 or _rows(left, right) <= _MOST_ROWS)


def _rows(left: tuple[int, ...], right: tuple[int, ...]) -> int:
    """Return the number of rows of one product: all of the left operand if there is one right matrix."""
    return prod(left[:-1]) if len(right) == 2 else prod(left[-2:-1])


def _reads_along_sum(step: KernelStep, move: KernelStep, values: Sequence[RegionValue]) -> bool:
    """Return whether a product of few rows reads a transposed right matrix where it was, along its sums."""
    if str(move.op) != "Transpose" or not _reads_right(step, move.outputs[0]):
        return False
    left, right = (values[arg].type.static_shape for arg in step.args if arg is not None)
    order = move.call.attrs.get("perm", tuple(reversed(range(len(right)))))
    is_turned = isinstance(order, tuple) and len(right) > 1 and order[-2] == len(right) - 1
    return is_turned and right[-2] >= _LEAST_SUM and pays_along_sum(_rows(left, right), right[-2])


def _is_softmax(step: KernelStep, values: Sequence[RegionValue]) -> bool:
    """Return whether a step is the softmax of rows."""
    if str(step.op) != "Softmax" or step.args[0] is None:
        return False
    rank = len(values[step.args[0]].type.static_shape)
    return step.call.attrs.get("axis", -1) in (-1, rank - 1)


def _keeps_rows(step: KernelStep, values: Sequence[RegionValue]) -> bool:
    """Return whether a move keeps the elements of a row contiguous."""
    (shape,) = (values[arg].type.static_shape for arg in step.args[:1] if arg is not None)
    match str(step.op):
        case "Transpose":
            order = step.call.attrs.get("perm", tuple(reversed(range(len(shape)))))
            return isinstance(order, tuple) and order[-1] == len(shape) - 1
        case "Slice":
            return values[step.outputs[0]].type.static_shape[-1:] == shape[-1:]
        case _:
            return False
