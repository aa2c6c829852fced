"""The same computation for another number of rows: the first axis of all that depends on certain inputs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from intarsia.ir import DType
from intarsia.ir.loop_walk import operands
from intarsia.ir.prim_func import Buffer, Literal, Load, LoopVar, Scalar
from intarsia.native.dag import ComputeDAG
from intarsia.native.te import ComputeOp, Operation, PlaceholderOp, Tensor
from intarsia.native.te.rewrite_scalar import rewrite_scalar, with_buffers


def with_rows(dag: ComputeDAG, carrying: Collection[str], rows: int) -> ComputeDAG | None:
    """Return a DAG for another number of rows; None if it does not compute each row by itself.

    Row i of each tensor that depends on rows is a function of row i of others alone, and of what has no rows.
    So the function of all rows is that of one, whatever their number is.

    Args:
        dag: Computation for some number of rows.
        carrying: Names of the placeholders whose first axis is the rows.
        rows: Number of rows of the result.
    """
    counts = {tensor.shape[0] if tensor.shape else 0 for tensor in _rows_of(dag, carrying)}
    if len(counts) != 1:
        return None
    (count,) = counts
    new_tensors: dict[Tensor, Tensor] = {}
    ops: list[Operation] = []
    for op in dag.ops:
        is_row_wise = op.name in carrying or any(tensor in new_tensors for tensor in op.inputs)
        if not is_row_wise:
            ops.append(op)
            continue
        after = _resized(op, count, rows, new_tensors)
        if after is None:
            return None
        new_tensors |= {Tensor(op, i): Tensor(after, i) for i in range(len(op.buffers))}
        ops.append(after)
    if any(tensor not in new_tensors for tensor in dag.outputs):
        return None
    return ComputeDAG(tuple(new_tensors.get(tensor, tensor) for tensor in dag.tensors), tuple(ops))


def without_unit_axes(dag: ComputeDAG, carrying: Collection[str]) -> ComputeDAG:
    """Return a DAG for one row without leading axes of extent 1, but for the last one: the axis of its rows.

    A tensor (1, 1, 64) of one token becomes (1, 64): the same elements for any number of rows.

    Args:
        dag: Computation for one row.
        carrying: Names of the placeholders that have rows.
    """
    while True:
        dependent = dependent_tensors(dag, carrying)
        if not dependent or not all(_has_unit_axes(tensor) for tensor in dependent):
            return dag
        dag = _without_first_axis(dag, dependent)


def _has_unit_axes(tensor: Tensor) -> bool:
    return tensor.shape[:2] == (1, 1) and isinstance(tensor.op, PlaceholderOp | ComputeOp)


def dependent_tensors(dag: ComputeDAG, carrying: Collection[str]) -> set[Tensor]:
    """Return the tensors that have rows: some placeholders, and what is computed from them."""
    result: set[Tensor] = set()
    for op in dag.ops:
        if op.name in carrying or any(tensor in result for tensor in op.inputs):
            result |= {Tensor(op, position) for position in range(len(op.buffers))}
    return result


def _without_first_axis(dag: ComputeDAG, dependent: Collection[Tensor]) -> ComputeDAG:
    """Return a DAG in which some tensors lack their first axis, of extent 1."""
    new_tensors: dict[Tensor, Tensor] = {}
    ops: list[Operation] = []
    for op in dag.ops:
        after = op
        if Tensor(op, 0) in dependent and isinstance(op, PlaceholderOp):
            after = replace(op, shape=op.shape[1:])
        elif Tensor(op, 0) in dependent and isinstance(op, ComputeOp):
            buffers = {old.buffer: new_tensors[old].buffer for old in op.inputs if old in new_tensors}
            bodies = tuple(_without_first_index(body, op.axes[0].var, buffers) for body in op.bodies)
            inputs = tuple(new_tensors.get(tensor, tensor) for tensor in op.inputs)
            after = replace(op, axes=op.axes[1:], bodies=bodies, inputs=inputs)
        if after is not op:
            new_tensors |= {Tensor(op, at): Tensor(after, at) for at in range(len(op.buffers))}
        ops.append(after)
    return ComputeDAG(tuple(new_tensors.get(tensor, tensor) for tensor in dag.tensors), tuple(ops))


def _without_first_index(root: Scalar, counter: LoopVar, buffers: Mapping[Buffer, Buffer]) -> Scalar:
    """Return a scalar with 0 in place of a counter, and loads from other buffers without a first index."""

    def rule(scalar: Scalar) -> Scalar:
        if scalar == counter:
            return Literal(0, DType.INT64)
        if isinstance(scalar, Load) and scalar.buffer in buffers:
            return Load(buffers[scalar.buffer], scalar.indices[1:])
        return scalar

    return rewrite_scalar(root, rule)


def _rows_of(dag: ComputeDAG, carrying: Collection[str]) -> list[Tensor]:
    return [tensor for tensor in dag.placeholders if tensor.op.name in carrying]


def _resized(
    op: Operation, count: int, rows: int, new_tensors: dict[Tensor, Tensor]
) -> PlaceholderOp | ComputeOp | None:
    """Return an operation for another number of rows; None if a row depends on more than its like."""
    if isinstance(op, PlaceholderOp):
        return replace(op, shape=(rows, *op.shape[1:]))
    if not isinstance(op, ComputeOp) or not op.axes or op.axes[0].extent != count:
        return None
    row_buffers = {tensor.buffer for tensor in op.inputs if tensor in new_tensors}
    row = op.axes[0].var
    if not all(_is_row_wise(body, row, row_buffers) for body in op.bodies):
        return None
    buffers: dict[Buffer, Buffer] = {
        tensor.buffer: new_tensors[tensor].buffer for tensor in op.inputs if tensor in new_tensors
    }
    return replace(
        op,
        axes=(replace(op.axes[0], extent=rows), *op.axes[1:]),
        bodies=tuple(with_buffers(body, buffers) for body in op.bodies),
        inputs=tuple(new_tensors.get(tensor, tensor) for tensor in op.inputs),
    )


def _is_row_wise(root: Scalar, row: LoopVar, row_buffers: Collection[Buffer]) -> bool:
    """Return whether the row's counter is the first index of each load of rows, and nowhere else."""
    stack = [root]
    while stack:
        scalar = stack.pop()
        if scalar == row:
            return False
        if isinstance(scalar, Load) and scalar.buffer in row_buffers:
            if scalar.indices[0] != row:
                return False
            stack.extend(scalar.indices[1:])
        else:
            stack.extend(operands(scalar))
    return True
