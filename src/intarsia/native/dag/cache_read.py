"""DAG transform cache_read: operations read a copy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from intarsia.ir.prim_func import Load
from intarsia.native.dag.compute_dag import ComputeDAG
from intarsia.native.dag.respliced import free_op_name, respliced
from intarsia.native.te.iter_var import IterVar
from intarsia.native.te.rewrite_scalar import with_buffers
from intarsia.native.te.tensor import ComputeOp, Operation, Tensor


def cache_read(dag: ComputeDAG, op_id: int, scope_name: str, readers: Sequence[Operation]) -> ComputeDAG:
    """Return the DAG with a copy of an operation's results after it, which the readers read instead.

    Args:
        dag: The DAG.
        op_id: Number of the operation in `dag.ops`.
        scope_name: Suffix of the copy's name, after the operation's name and `.`.
        readers: ComputeOps that read the copy from now on.
    """
    op = dag.ops[op_id]
    copy = _copy(op, free_op_name(dag, f"{op.name}.{scope_name}"))
    buffers = dict(zip(op.buffers, copy.buffers, strict=True))
    tensors = {Tensor(op, i): Tensor(copy, i) for i in range(len(op.buffers))}
    changed: dict[Operation, Operation] = {}
    for reader in readers:
        assert isinstance(reader, ComputeOp), "only computations by elements read copies"
        changed[reader] = replace(
            reader,
            bodies=tuple(with_buffers(body, buffers) for body in reader.bodies),
            inputs=tuple(tensors.get(tensor, tensor) for tensor in reader.inputs),
        )
    return respliced(dag, op_id, (op, copy), {}, changed)


def _copy(op: Operation, name: str) -> ComputeOp:
    axes = tuple(IterVar(f"ax{i}", extent) for i, extent in enumerate(op.buffers[0].shape))
    indices = tuple(axis.var for axis in axes)
    return ComputeOp(
        name,
        axes,
        (),
        tuple(Load(buffer, indices) for buffer in op.buffers),
        None,
        tuple(buffer.dtype for buffer in op.buffers),
        tuple(Tensor(op, i) for i in range(len(op.buffers))),
    )
