"""DAGs with operations put in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from intarsia.native.dag.compute_dag import ComputeDAG
from intarsia.native.te.tensor import Operation, PlaceholderOp, Tensor
from intarsia.support.free_names import free_name


def respliced(
    dag: ComputeDAG,
    place: int,
    made: Iterable[Operation],
    tensors: Mapping[Tensor, Tensor],
    changed: Mapping[Operation, Operation],
) -> ComputeDAG:
    """The DAG with `made` in the place of its operation `place`, and all behind it reading what is new.

    Args:
        dag: The DAG.
        place: Of the operation that is replaced.
        made: What replaces it, in order.
        tensors: New tensors for old ones, for every reader and for the DAG's own tensors.
        changed: Other operations behind `place` that are replaced; `tensors` holds for their inputs too.
    """
    known = dict(tensors)
    ops = [*dag.ops[:place], *made]
    for old in dag.ops[place + 1 :]:
        op = _reading(changed.get(old, old), known)
        if op is not old:
            known |= {Tensor(old, i): Tensor(op, i) for i in range(len(op.buffers))}
        ops.append(op)
    return ComputeDAG(tuple(known.get(tensor, tensor) for tensor in dag.tensors), tuple(ops))


def _reading(op: Operation, known: Mapping[Tensor, Tensor]) -> Operation:
    inputs = tuple(known.get(tensor, tensor) for tensor in op.inputs)
    return op if isinstance(op, PlaceholderOp) or inputs == op.inputs else replace(op, inputs=inputs)


def free_op_name(dag: ComputeDAG, name: str) -> str:
    """The name, with a number behind it if an operation of the DAG has it."""
    return free_name(name, {op.name for op in dag.ops}, ".{}")
