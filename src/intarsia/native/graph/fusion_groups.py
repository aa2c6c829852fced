"""Which steps become one kernel: those around one convolution, product, pool or reduction, or none of these.

A group has one result, that of its last step; what is between its steps is read inside of it only. So no
path leaves a group and comes back, and a group can run when its last step could. Groups grow from their
last step backwards along what it reads, as in graph fusion along post-dominators (TVM, OSDI 2018, section 3).
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Container, Sequence
from typing import Final

from intarsia.ir.loop_walk import scalar_post_order
from intarsia.ir.prim_func import Load
from intarsia.native.graph.kernel_dag import kernel_dag
from intarsia.native.graph.region_plan import RegionValue
from intarsia.native.graph.step_kind import StepKind, step_kind
from intarsia.native.graph.straight_line import Step, StraightLine
from intarsia.native.te import ComputeOp, Operation, PlaceholderOp, Tensor
from intarsia.native.te.tensor import operations

_LARGEST = 64
"""How many steps an element's expression may have, counted as often as they stand there."""
_MOST_STEPS = 40
"""How many steps a group may have: loops for what is not inlined stand inside each other's memory."""

_POINTWISE, _MOVE, _INJECTIVE = StepKind.ELEMENTWISE, StepKind.MOVE, StepKind.INJECTIVE
_REDUCTION = StepKind.REDUCTION

_LEAST_ROWS: Final = 8
"""With fewer rows no panel of the right matrix is copied, and elements in another order are read slowly."""


def fusion_groups(
    line: StraightLine, alone: Container[int] = (), *, attention: bool = True
) -> tuple[tuple[Step, ...], ...]:
    """The steps of a region in groups, in an order in which they can run; the last step gives the result.

    First elementwise steps join what they follow, and each other where the shape stays the same: those
    that follow one step before those that follow several, so that each branch keeps what belongs to it.
    Then elementwise groups join the reduction or the transposition that they feed, and injective steps
    the elementwise group that they feed, if no element is computed twice for it. Products of batches
    take in the moves that make their matrices, and at last the two products of attention join with the
    softmax between them.

    Linear in the region, times log n.

    Args:
        line: The region.
        alone: Places of steps that are not put together with others.
        attention: Whether the products of attention join.
    """
    groups = _Groups(line, alone)
    groups.grow(groups.is_chain)
    groups.grow(groups.is_epilogue)
    groups.grow(groups.is_prologue)
    if attention:
        groups.grow(groups.is_attention)
    return groups.in_order()


class _Groups:
    """A partition of the steps; the last step of a group stands for it.

    Args:
        line: The region.
        alone: Places of steps that stay alone.
    """

    def __init__(self, line: StraightLine, alone: Container[int]) -> None:
        self._line, self._steps = line, line.steps
        self._kinds = [
            StepKind.OPAQUE if place in alone else step_kind(step) for place, step in enumerate(line.steps)
        ]
        self._end = list(range(len(line.steps)))
        self._members = [[place] for place in self._end]
        self._has_loops = [kind.has_loops for kind in self._kinds]
        self._times = [1] * len(line.steps)  # how often a step stands in an element's expression of its group
        self._size = [1] * len(line.steps)
        self._reads: dict[int, Counter[int]] = {}
        maker = {number: place for place, step in enumerate(line.steps) for number in step.outputs}
        self._read_from = [tuple({maker[arg] for arg in step.args if arg in maker}) for step in line.steps]
        self._readers: list[list[int]] = [[] for _ in line.steps]
        for place, producers in enumerate(self._read_from):
            for producer in producers:
                self._readers[producer].append(place)
        outside = {line.values[number].same_as for number in line.results}
        outside |= {value.same_as for number, value in enumerate(line.values) if value.same_as != number}
        self._is_kept = [not outside.isdisjoint(step.outputs) for step in line.steps]

    def in_order(self) -> tuple[tuple[Step, ...], ...]:
        """The groups."""
        return tuple(
            tuple(self._steps[member] for member in sorted(self._members[end]))
            for end in range(len(self._steps))
            if self._end[end] == end
        )

    def grow(self, may_join: Callable[[int, int], bool]) -> None:
        """Let groups take in the groups that they read, the last one first.

        Args:
            may_join: Whether a group, given by its last step, may join another one that is the only reader.
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
                    for found in self._sources(self._members[source]):
                        heapq.heappush(waiting, found)
                    self._join(source, end)

    def _is_read_in(self, source: int, end: int) -> bool:
        """Whether nothing else reads a group, and both together are small enough."""
        steps = len(self._members[source]) + len(self._members[end])
        return steps <= _MOST_STEPS and all(self._end[reader] == end for reader in self._readers[source])

    def is_chain(self, source: int, end: int) -> bool:
        """Whether a group is followed element by element, and by what reads nothing else that is computed."""
        is_alone = all(len(self._read_from[reader]) == 1 for reader in self._readers[source])
        return is_alone and self.is_epilogue(source, end)

    def is_epilogue(self, source: int, end: int) -> bool:
        """Whether a group is followed element by element by one of the same shape."""
        if self._kinds[end] is not _POINTWISE or self._shape(source) != self._shape(end):
            return False
        if not self._is_read_by(source, _POINTWISE):
            return False
        if self._has_loops[source]:
            return not self._has_loops[end]
        return self._kinds[source] is _POINTWISE and self._fits(source, end)

    def is_prologue(self, source: int, end: int) -> bool:
        """Whether a group without loops of its own can be computed where it is read, each element once.

        A product may also read rows that lie elsewhere, as those of heads do, and the elements of its right
        matrix in any order: it goes over panels of that one, which are copied.
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

    def is_attention(self, source: int, end: int) -> bool:
        """Whether a group is a softmax between two products of batches, or the first of the products."""
        if self._is_softmax(source):
            is_left = self._is_left_matrix(source) and self._is_product(end)
            return is_left and self._scores_of(source) is not None
        readers = self._readers[source]
        return end not in readers and any(
            self._is_softmax(reader) and self._scores_of(reader) == source for reader in readers
        )

    def _is_softmax(self, place: int) -> bool:
        return _is_softmax(self._steps[place], self._line.values)

    def _is_left_matrix(self, place: int) -> bool:
        """Whether only products of batches read a step, as the matrix whose rows they take."""
        (number,), values = self._steps[place].outputs, self._line.values
        readers = [self._steps[reader] for reader in self._readers[place]]
        return all(_reads_batches(step, values) and step.args[1] != number for step in readers)

    def _is_product(self, end: int) -> bool:
        """Whether the loops of a group are those of a product of batches."""
        members = self._members[end]
        anchors = [self._steps[member] for member in members if self._kinds[member].has_loops]
        return len(anchors) == 1 and _reads_batches(anchors[0], self._line.values)

    def _scores_of(self, softmax: int) -> int | None:
        """The group of the product whose rows a softmax takes, if nothing else reads them."""
        (maker,) = self._read_from[softmax] or (softmax,)
        is_kept = self._is_kept[maker] or self._readers[maker] != [softmax]
        return None if is_kept or self._end[maker] != maker or not self._is_product(maker) else maker

    def _is_matrix_of_product(self, source: int) -> bool:
        """Whether a move of elements can be left to the products of its group that read it."""
        if self._kinds[source] is not _MOVE or len(self._members[source]) > 1:
            return False
        keeps = _keeps_rows(self._steps[source], self._line.values)
        return all(
            self._reads_in_place(reader, source, is_left_too=keeps) for reader in self._readers[source]
        )

    def _reads_in_place(self, reader: int, source: int, *, is_left_too: bool) -> bool:
        """Whether products of the group read what a move makes, perhaps through another move of the group."""
        step, (number,) = self._steps[reader], self._steps[source].outputs
        if self._kinds[reader] is _MOVE:
            after = self._readers[reader]
            return all(self._reads_in_place(each, reader, is_left_too=is_left_too) for each in after)
        return _reads_batches(step, self._line.values) and (is_left_too or _reads_right(step, number))

    def _sources(self, members: list[int]) -> list[int]:
        """The groups that steps read, as negative numbers, so that a heap gives the last one first."""
        return [-self._end[source] for member in members for source in self._read_from[member]]

    def _is_read_by(self, source: int, *kinds: StepKind) -> bool:
        return all(self._kinds[reader] in kinds for reader in self._readers[source])

    def _shape(self, place: int) -> tuple[int, ...]:
        return self._line.values[self._steps[place].outputs[0]].type.static_shape

    def _fits(self, source: int, end: int) -> bool:
        """Whether an element's expression stays small enough with a group in it."""
        return self._size[end] + self._size[source] * self._times_in(source) <= _LARGEST

    def _times_in(self, source: int) -> int:
        number = self._steps[source].outputs[0]
        return sum(self._times[reader] * self._reads_of(reader)[number] for reader in self._readers[source])

    def _reads_of(self, place: int) -> Counter[int]:
        """How often a step's element reads each of its arguments, by number."""
        if place not in self._reads:
            step = self._steps[place]
            made = kernel_dag((step,), self._line.values, step.outputs)
            reads = _inlined_reads(made.dag.outputs[0])
            names = (tensor.op.name for tensor in made.dag.placeholders)
            self._reads[place] = Counter(
                {source.number: reads[name] for name, source in zip(names, made.sources, strict=True)}
            )
        return self._reads[place]

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
    """By the name of a placeholder, how many loads of it the element has as one expression.

    Operations with reductions, and those that no expression declares, count as read once for each load.
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


# Products of attention's heads read matrices where they lie: as parts of longer rows.


def _reads_right(step: Step, number: int) -> bool:
    """Whether a value is the right matrix of a product only."""
    return str(step.op) == "MatMul" and step.args[1] == number != step.args[0]


def _reads_batches(step: Step, values: Sequence[RegionValue]) -> bool:
    """Whether a step multiplies pairs of matrices, with rows enough for a right one to be copied by panels.

    A product by a single matrix is none: all its rows are those of one product.
    """
    if str(step.op) != "MatMul":
        return False
    left, right = (values[arg].type.static_shape for arg in step.args if arg is not None)
    return len(left) > 2 and len(right) > 2 and left[-2] >= _LEAST_ROWS


def _is_softmax(step: Step, values: Sequence[RegionValue]) -> bool:
    """Whether a step is the softmax of rows."""
    if str(step.op) != "Softmax" or step.args[0] is None:
        return False
    rank = len(values[step.args[0]].type.static_shape)
    return step.call.attrs.get("axis", -1) in (-1, rank - 1)


def _keeps_rows(step: Step, values: Sequence[RegionValue]) -> bool:
    """Whether a step that moves elements leaves those of a row next to each other."""
    (shape,) = (values[arg].type.static_shape for arg in step.args[:1] if arg is not None)
    match str(step.op):
        case "Transpose":
            order = step.call.attrs.get("perm", tuple(reversed(range(len(shape)))))
            return isinstance(order, tuple) and order[-1] == len(shape) - 1
        case "Slice":
            return values[step.outputs[0]].type.static_shape[-1:] == shape[-1:]
        case _:
            return False
