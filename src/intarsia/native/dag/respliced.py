"""Replacement of operations in a DAG."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from intarsia.native.dag.compute_dag import ComputeDAG
from intarsia.native.te.tensor import Operation, PlaceholderOp, Tensor
from intarsia.support.free_names import free_name


def respliced(
    dag: ComputeDAG,
    op_id: int,
    new_ops: Iterable[Operation],
    tensors: Mapping[Tensor, Tensor],
    changed: Mapping[Operation, Operation],
) -> ComputeDAG:
    """Return the DAG with `new_ops` in place of an operation, and later operations reading the new tensors.

    Args:
        dag: The DAG.
        op_id: Number of the replaced operation in `dag.ops`.
        new_ops: Operations that replace it, in order.
        tensors: New tensors by old ones, for every reader and for `dag.tensors`.
        changed: New operations by old ones after `op_id`; `tensors` applies to their inputs too.
    """
    new_tensors = dict(tensors)
    ops = [*dag.ops[:op_id], *new_ops]
    for old in dag.ops[op_id + 1 :]:
        op = _reading(changed.get(old, old), new_tensors)
        # An operation that changes has new tensors, which its readers must read in turn.
        if op is not old:
            new_tensors |= {Tensor(old, i): Tensor(op, i) for i in range(len(op.buffers))}
        ops.append(op)
    return ComputeDAG(tuple(new_tensors.get(tensor, tensor) for tensor in dag.tensors), tuple(ops))


def _reading(op: Operation, new_tensors: Mapping[Tensor, Tensor]) -> Operation:
    inputs = tuple(new_tensors.get(tensor, tensor) for tensor in op.inputs)
    return op if isinstance(op, PlaceholderOp) or inputs == op.inputs else replace(op, inputs=inputs)


def free_op_name(dag: ComputeDAG, name: str) -> str:
    """The name, with a number behind it if an operation of the DAG has it."""
    return free_name(name, {op.name for op in dag.ops}, ".{}")
