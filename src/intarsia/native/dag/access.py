"""Who reads what, and where: facts about a DAG that schedules are chosen by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TypeAlias

from intarsia.ir.loop_walk import scalar_post_order
from intarsia.ir.prim_func import Arith, ArithOp, Intrinsic, Literal, Load, LoopVar, Scalar
from intarsia.native.dag.compute_dag import ComputeDAG
from intarsia.native.dag.op_attrs import SIMPLIFY_CONST
from intarsia.native.te.tensor import ComputeOp, Operation

Indices: TypeAlias = tuple[Scalar, ...]
"""Where an element is read."""


@dataclass(frozen=True, slots=True)
class SimpleAccess:
    """An access whose indices are spatial axes of the reader, each plus a number, or numbers.

    Attributes:
        misses_axis: Whether a spatial axis is no index.
        repeats_axis: Whether one is twice.
        keeps_order: Whether they come in the order of the axes.
    """

    misses_axis: bool
    repeats_axis: bool
    keeps_order: bool


@dataclass(frozen=True)
class AccessAnalyzer:
    """Facts about a DAG's operations (seed ansor_minimum; Ansor, section 4.1).

    What is written by a statement of its own (ExternOp) is never simple, never inlined and never tiled.

    Attributes:
        dag: Which DAG.
    """

    dag: ComputeDAG

    @cached_property
    def read_from(self) -> Mapping[Operation, Mapping[Operation, tuple[Indices, ...]]]:
        """For each operation, what it reads, and all indices it reads there, in the order of the text."""
        producers = {buffer: op for op in self.dag.ops for buffer in op.buffers}
        found: dict[Operation, Mapping[Operation, tuple[Indices, ...]]] = {}
        for op in self.dag.ops:
            reads: dict[Operation, list[Indices]] = {tensor.op: [] for tensor in op.inputs}
            for load in _loads(op):
                if load.buffer in producers:
                    reads.setdefault(producers[load.buffer], []).append(load.indices)
            found[op] = MappingProxyType({producer: tuple(each) for producer, each in reads.items()})
        return MappingProxyType(found)

    def is_strictly_inlineable(self, op: Operation) -> bool:
        """Whether computing an element where it is read costs next to nothing.

        It reads at axes in order, none twice, calls no `exp`, and has no branch; or reads nothing.
        """
        if not isinstance(op, ComputeOp) or op.combiner is not None:
            return False
        if not op.inputs:
            return True
        accesses = self._accesses(op)
        is_plain = all(each is not None and each.keeps_order and not each.repeats_axis for each in accesses)
        return is_plain and not any(map(_is_expensive, op.bodies))

    def needs_multi_level_tiling(self, op: Operation) -> bool:
        """Whether elements of what it reads are used for many of its elements, so that tiles pay."""
        if not isinstance(op, ComputeOp) or SIMPLIFY_CONST in op.attrs:
            return False
        axes = {axis.var for axis in op.axes if axis.extent > 1}
        missing = sum(
            bool(axes - {scalar for indices in reads for scalar in _variables(indices)})
            for reads in self.read_from[op].values()
        )
        return missing >= 2 or (missing >= 1 and bool(op.reduce_axes))

    def is_output(self, op: Operation) -> bool:
        """Whether the caller gets a result of it."""
        return self.dag.is_output(op)

    def num_common_outer_iterators(self, op: Operation, target: Operation) -> int:
        """Of how many leading axes a loop can be shared with an operation that reads it, directly or not.

        The least along a path of readers, and of all paths; 0 if there is no path.
        """
        places = self.dag.op_ids
        shared = {target: _rank(target)}
        for each in reversed(self.dag.ops[places[op] : places[target]]):
            counts = [
                min(self._common_outer(reader, each), shared[reader])
                for reader in self.dag.readers[each]
                if reader in shared
            ]
            if counts:
                shared[each] = min(counts)
        return min(shared.get(op, 0), _rank(op))

    def elementwise_match(self, op: Operation, target: Operation) -> bool:
        """Whether each element of `target` comes from the element of `op` at the same place.

        Follows the only reader from operation to operation.
        """
        while op is not target:
            readers = self.dag.readers[op]
            if len(readers) != 1 or not self._is_elementwise(readers[0], op):
                return False
            op = readers[0]
        return True

    def _is_elementwise(self, reader: Operation, op: Operation) -> bool:
        if not (isinstance(reader, ComputeOp) and isinstance(op, ComputeOp) and reader.shape == op.shape):
            return False
        accesses = [simple_access(reader, indices) for indices in self.read_from[reader][op]]
        plain = SimpleAccess(misses_axis=False, repeats_axis=False, keeps_order=True)
        return all(each == plain for each in accesses)

    def _accesses(self, op: ComputeOp) -> list[SimpleAccess | None]:
        reads = self.read_from[op].values()
        return [simple_access(op, indices) for each in reads for indices in each]

    def _common_outer(self, reader: Operation, op: Operation) -> int:
        if not isinstance(reader, ComputeOp):
            return 0
        shape, count = op.buffers[0].shape, 0
        for place, (axis, extent) in enumerate(zip(reader.axes, shape, strict=False)):
            reads = self.read_from[reader][op]
            if axis.extent != extent or not all(shifted(each[place]) == axis.var for each in reads):
                break
            count += 1
        return count


def simple_access(op: ComputeOp, indices: Sequence[Scalar]) -> SimpleAccess | None:
    """What the indices of an access say, or None if they are more than axes plus numbers."""
    places = {axis.var: place for place, axis in enumerate(op.axes)}
    found = []
    for index in indices:
        if isinstance(index, Literal):
            continue
        variable = shifted(index)
        if variable is None or variable not in places:
            return None
        found.append(places[variable])
    return SimpleAccess(
        misses_axis=len(set(found)) < len(places),
        repeats_axis=len(set(found)) < len(found),
        keeps_order=found == sorted(found),
    )


def shifted(index: Scalar) -> LoopVar | None:
    """The variable of an index that is one, or one plus or minus a number."""
    match index:
        case LoopVar():
            return index
        case Arith(op=ArithOp.ADD | ArithOp.SUB, operands=(LoopVar() as variable, Literal())):
            return variable
        case Arith(op=ArithOp.ADD, operands=(Literal(), LoopVar() as variable)):
            return variable
        case _:
            return None


def _loads(op: Operation) -> Iterator[Load]:
    for body in op.bodies if isinstance(op, ComputeOp) else ():
        for scalar, _ in scalar_post_order(body):
            if isinstance(scalar, Load):
                yield scalar


def _variables(indices: Indices) -> Iterator[LoopVar]:
    for index in indices:
        for scalar, _ in scalar_post_order(index):
            if isinstance(scalar, LoopVar):
                yield scalar


def _is_expensive(body: Scalar) -> bool:
    for scalar, _ in scalar_post_order(body):
        match scalar:
            case Intrinsic(name="exp" | "if_then_else") | Arith(op=ArithOp.SELECT):
                return True
    return False


def _rank(op: Operation) -> int:
    return len(op.buffers[0].shape)
