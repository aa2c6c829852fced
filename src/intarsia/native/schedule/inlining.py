"""Inlining of stages into their readers."""

from __future__ import annotations

from collections.abc import Container, Sequence
from math import prod

from intarsia.ir.loop_walk import scalar_post_order
from intarsia.ir.prim_func import Arith, ArithOp, Intrinsic, Load, Scalar
from intarsia.native.dag import AccessAnalyzer, simple_access
from intarsia.native.loop_state import LoopState
from intarsia.native.te import ComputeOp, Operation

_MOST_GENERATED = 40
"""The same limit for stages that are computed from indices only."""
_SHORTEST_RUN = 32
"""Minimum length of rows that are reduced in vectors with any instruction set: two vectors of 16 lanes."""
_MOST_PARTS = 200
"""Maximum number of scalars in the expression of an inlined element."""


def with_inlined(state: LoopState, kept: Container[str] = ()) -> LoopState:
    """Return the state with all stages inlined whose inlining is free.

    These are strictly inlineable stages, and those that one reader reads elementwise, so that nothing is
    computed twice.

    Args:
        state: State in which no loop has been changed yet.
        kept: Names of operations that must not be inlined.
    """
    dag = state.current_dag
    analyzer = AccessAnalyzer(dag)
    sizes: dict[Operation, int] = {}
    inlined: set[Operation] = set()
    for op in dag.ops:
        if not isinstance(op, ComputeOp):
            continue
        inside = sum(sizes[tensor.op] for tensor in op.inputs if tensor.op in inlined)
        sizes[op] = inside + sum(sum(1 for _ in scalar_post_order(body)) for body in op.bodies)
        if (
            op.name not in kept
            and sizes[op] <= (_MOST_PARTS if op.inputs else _MOST_GENERATED)
            and _is_free(analyzer, op)
        ):
            inlined.add(op)
            state = state.compute_inline(op.name)
    return state


def _is_free(analyzer: AccessAnalyzer, op: ComputeOp) -> bool:
    if op.combiner is not None or analyzer.is_output(op):
        return False
    readers = analyzer.dag.readers[op]
    if not readers or not all(isinstance(reader, ComputeOp) for reader in readers):
        return False
    reads = sum(_uses(analyzer, reader, op) for reader in readers)
    repeats = reads > max(1, prod(op.shape))
    if repeats and any(map(_is_costly, op.bodies)):
        return False
    if analyzer.is_strictly_inlineable(op):
        return True
    if all(isinstance(body, Load) for body in op.bodies) and _has_one_sink(analyzer, op):
        return True
    return not repeats and all(_reads_plainly(analyzer, reader, op) for reader in readers)


def _has_one_sink(analyzer: AccessAnalyzer, op: ComputeOp) -> bool:
    """Return whether all readers of a copy read it elementwise, and are inlined into one of them.

    It is read in one loop then, in which equal reads are one.
    """
    sinks, stack = set[Operation](), list[Operation]([op])
    while stack:
        source = stack.pop()
        for reader in analyzer.dag.readers[source]:
            if not analyzer.is_elementwise(reader, source):
                return False
            nexts = analyzer.dag.readers[reader]
            is_inlined = not analyzer.is_output(reader) and len(nexts) == 1
            if is_inlined and analyzer.is_elementwise(nexts[0], reader):
                stack.append(reader)
            else:
                sinks.add(reader)
    return len(sinks) == 1


def _uses(analyzer: AccessAnalyzer, reader: Operation, op: Operation) -> int:
    """Return how many elements of an operation another one reads, counting repetitions."""
    assert isinstance(reader, ComputeOp), "the caller has looked"
    count = prod(axis.extent for axis in (*reader.axes, *reader.reduce_axes))
    return count * len(dict.fromkeys(analyzer.read_from[reader][op]))


def _reads_plainly(analyzer: AccessAnalyzer, reader: Operation, op: Operation) -> bool:
    assert isinstance(reader, ComputeOp), "the caller has looked"
    reads = analyzer.read_from[reader][op]
    if reader.combiner is not None:
        # The steps of a sum use each element once: computed there, it needs no memory in between.
        return all(_are_counters(reader, indices) and not _is_short(reader, indices) for indices in reads)
    return all(simple_access(reader, indices) is not None for indices in reads)


def _are_counters(reader: ComputeOp, indices: Sequence[Scalar]) -> bool:
    """Return whether indices are different counters of a reduction."""
    counters = {axis.var for axis in (*reader.axes, *reader.reduce_axes)}
    return len(set(indices)) == len(indices) and counters.issuperset(indices)


def _is_short(reader: ComputeOp, indices: Sequence[Scalar]) -> bool:
    """Return whether a reduction goes along rows that are too short for vectors of partial results."""
    return any(axis.var == indices[-1] and axis.extent < _SHORTEST_RUN for axis in reader.reduce_axes)


def _is_costly(body: Scalar) -> bool:
    """Return whether a body has operations other than sums, products and comparisons."""
    for scalar, _ in scalar_post_order(body):
        match scalar:
            case Intrinsic() | Arith(op=ArithOp.DIV | ArithOp.FLOOR_DIV | ArithOp.FLOOR_MOD):
                return True
    return False
