"""Access analysis: facts on the reads of a DAG, by which schedules are chosen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TypeAlias

from intarsia.ir.loop_walk import scalar_post_order
from intarsia.ir.prim_func import Arith, ArithOp, Intrinsic, Literal, Load, LoopVar, Scalar
from intarsia.native.dag.compute_dag import ComputeDAG
from intarsia.native.te.op_attrs import SIMPLIFY_CONST
from intarsia.native.te.tensor import ComputeOp, Operation

Indices: TypeAlias = tuple[Scalar, ...]
"""Indices of a read, one for each dimension."""


@dataclass(frozen=True, slots=True)
class SimpleAccess:
    """An access whose indices are constants, or spatial axes of the reader plus constants.

    Attributes:
        misses_axis: Whether a spatial axis is missing among the indices.
        repeats_axis: Whether an axis occurs twice.
        keeps_order: Whether the indices have the order of the axes.
    """

    misses_axis: bool
    repeats_axis: bool
    keeps_order: bool


@dataclass(frozen=True)
class AccessAnalyzer:
    """Facts about a DAG's operations (seed ansor_minimum; Ansor, section 4.1).

    An ExternOp, whose statement is given, is never simple, never inlined and never tiled.

    Attributes:
        dag: The DAG.
    """

    dag: ComputeDAG

    @cached_property
    def read_from(self) -> Mapping[Operation, Mapping[Operation, tuple[Indices, ...]]]:
        """For each operation, its producers with the indices of each read, in the order of the text."""
        producers = {buffer: op for op in self.dag.ops for buffer in op.buffers}
        reads_by_op: dict[Operation, Mapping[Operation, tuple[Indices, ...]]] = {}
        for op in self.dag.ops:
            reads: dict[Operation, list[Indices]] = {tensor.op: [] for tensor in op.inputs}
            for load in _loads(op):
                if load.buffer in producers:
                    reads.setdefault(producers[load.buffer], []).append(load.indices)
            reads_by_op[op] = MappingProxyType(
                {producer: tuple(accesses) for producer, accesses in reads.items()}
            )
        return MappingProxyType(reads_by_op)

    def is_strictly_inlineable(self, op: Operation) -> bool:
        """Return whether computing an element where it is read costs almost nothing.

        Its indices are axes in order, without repetition, and it has no `exp` and no branch; or it reads
        nothing.
        """
        if not isinstance(op, ComputeOp) or op.combiner is not None:
            return False
        if not op.inputs:
            return True
        accesses = self._accesses(op)
        is_plain = all(
            access is not None and access.keeps_order and not access.repeats_axis for access in accesses
        )
        return is_plain and not any(map(_is_expensive, op.bodies))

    def needs_multi_level_tiling(self, op: Operation) -> bool:
        """Return whether many elements use the same inputs, so that tiling pays off."""
        if not isinstance(op, ComputeOp) or SIMPLIFY_CONST in op.attrs:
            return False
        axes = {axis.var for axis in op.axes if axis.extent > 1}
        missing = sum(
            bool(axes - {scalar for indices in reads for scalar in _variables(indices)})
            for reads in self.read_from[op].values()
        )
        # Ansor's rule: an input that lacks an axis is reused along it. Two such inputs pay off, as in an
        # outer product; a single one only with a reduction.
        return missing >= 2 or (missing >= 1 and bool(op.reduce_axes))

    def is_output(self, op: Operation) -> bool:
        """Return whether a result of the operation is an output of the DAG."""
        return self.dag.is_output(op)

    def num_common_outer_iterators(self, op: Operation, target: Operation) -> int:
        """Return the number of leading axes whose loops `op` can share with its (indirect) reader `target`.

        The minimum along each path of readers, and over all paths; 0 if there is no path.
        """
        op_ids = self.dag.op_ids
        shared = {target: _rank(target)}
        for producer in reversed(self.dag.ops[op_ids[op] : op_ids[target]]):
            counts = [
                min(self._common_outer(reader, producer), shared[reader])
                for reader in self.dag.readers[producer]
                if reader in shared
            ]
            if counts:
                shared[producer] = min(counts)
        return min(shared.get(op, 0), _rank(op))

    def elementwise_match(self, op: Operation, target: Operation) -> bool:
        """Return whether each element of `target` depends on the element of `op` at the same indices.

        Follows a chain of operations with one reader each.
        """
        while op is not target:
            readers = self.dag.readers[op]
            if len(readers) != 1 or not self.is_elementwise(readers[0], op):
                return False
            op = readers[0]
        return True

    def is_elementwise(self, reader: Operation, op: Operation) -> bool:
        """Return whether an element of `reader` depends on the element of `op` at the same indices only."""
        if not (isinstance(reader, ComputeOp) and isinstance(op, ComputeOp) and reader.shape == op.shape):
            return False
        accesses = [simple_access(reader, indices) for indices in self.read_from[reader][op]]
        plain = SimpleAccess(misses_axis=False, repeats_axis=False, keeps_order=True)
        return all(access == plain for access in accesses)

    def _accesses(self, op: ComputeOp) -> list[SimpleAccess | None]:
        reads = self.read_from[op].values()
        return [simple_access(op, indices) for accesses in reads for indices in accesses]

    def _common_outer(self, reader: Operation, op: Operation) -> int:
        if not isinstance(reader, ComputeOp):
            return 0
        shape, count = op.buffers[0].shape, 0
        for dim, (axis, extent) in enumerate(zip(reader.axes, shape, strict=False)):
            reads = self.read_from[reader][op]
            if axis.extent != extent or not all(shifted(indices[dim]) == axis.var for indices in reads):
                break
            count += 1
        return count


def simple_access(op: ComputeOp, indices: Sequence[Scalar]) -> SimpleAccess | None:
    """Classify the indices of an access; None if one is neither a constant nor an axis plus a constant."""
    positions = {axis.var: position for position, axis in enumerate(op.axes)}
    axis_positions = []
    for index in indices:
        if isinstance(index, Literal):
            continue
        variable = shifted(index)
        if variable is None or variable not in positions:
            return None
        axis_positions.append(positions[variable])
    return SimpleAccess(
        misses_axis=len(set(axis_positions)) < len(positions),
        repeats_axis=len(set(axis_positions)) < len(axis_positions),
        keeps_order=axis_positions == sorted(axis_positions),
    )


def shifted(index: Scalar) -> LoopVar | None:
    """Return the variable of an index of the form variable, variable plus or minus a constant; else None."""
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
