"""Lowering without a schedule: a loop nest for each operation, one after the other."""

from __future__ import annotations

from collections.abc import Sequence

from intarsia.ir import PrimFunc
from intarsia.ir.prim_func import Allocate, Block, Buffer, For, LoopVar, Scalar, Statement
from intarsia.native.lowering.element_store import ElementStores, block
from intarsia.native.lowering.extern_body import splice
from intarsia.native.te import ComputeOp, ExternOp, IterVar, Operation, PlaceholderOp, Tensor
from intarsia.native.te.tensor import operations
from intarsia.support.errors import UsageError
from intarsia.support.free_names import NameSupply


def lower_naive(tensors: Sequence[Tensor], *, in_rows: bool = False) -> PrimFunc:
    """Return a loop function that computes tensors.

    Its parameters are the placeholders in the order in which they are met when the tensors' inputs are
    followed from the first on, then the tensors in the order given. What is between them is allocated.

    Args:
        tensors: Tensors to compute.
        in_rows: Whether the elements along the last axis are summed side by side instead of one after the
            other. Each sum keeps its order, and LLVM vectorises the row.

    Raises:
        UsageError: Two operations have one name, or a tensor is a placeholder or stands there twice.
    """
    ops = operations(tensor.op for tensor in tensors)
    _check(tensors, ops)
    given = [buffer for op in ops if isinstance(op, PlaceholderOp) for buffer in op.buffers]
    outputs = [tensor.buffer for tensor in tensors]
    names = NameSupply(buffer.name for op in ops for buffer in op.buffers)
    body: Statement = Block(())
    for op in reversed(ops):
        if isinstance(op, PlaceholderOp):
            continue
        body = block((operation_statement(op, names, in_rows=in_rows), body))
        for buffer in op.buffers:
            if buffer not in outputs:
                body = Allocate(buffer, body)
    return PrimFunc((*given, *outputs), body)


def operation_statement(op: ComputeOp | ExternOp, names: NameSupply, *, in_rows: bool = False) -> Statement:
    """Return the loop nest of an operation, over its axes in their order."""
    stores = ElementStores(names)
    if isinstance(op, ExternOp):
        return splice(op, names, stores, lambda load: load)
    indices: tuple[Scalar, ...] = tuple(axis.var for axis in op.axes)
    if op.combiner is None:
        return _nest(op.axes, _stores(stores, op.buffers, indices, op.bodies))
    update = stores.update(op.buffers, indices, op.combiner, op.bodies)
    first = stores.initialise(op.buffers, indices, op.combiner)
    rows = len(op.axes) - in_rows if op.axes else 0
    outer, row = op.axes[:rows], op.axes[rows:]
    return _nest(outer, block((_nest(row, first), _nest(op.reduce_axes, _nest(row, update)))))


def _stores(
    stores: ElementStores, buffers: Sequence[Buffer], indices: tuple[Scalar, ...], values: Sequence[Scalar]
) -> Statement:
    return block(
        [stores.store(buffer, indices, value) for buffer, value in zip(buffers, values, strict=True)]
    )


def _nest(axes: Sequence[IterVar], body: Statement) -> Statement:
    for axis in reversed(axes):
        body = For(LoopVar(axis.name), axis.extent, body)
    return body


def _check(tensors: Sequence[Tensor], ops: Sequence[Operation]) -> None:
    names = [op.name for op in ops]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UsageError(f"several operations are named {', '.join(twice)}; expected different names")
    for position, tensor in enumerate(tensors):
        if isinstance(tensor.op, PlaceholderOp):
            raise UsageError(f"{tensor.buffer.name} is given; expected tensors that are computed")
        if tensor in tensors[:position]:
            raise UsageError(f"{tensor.buffer.name} stands twice among the tensors; expected each once")
