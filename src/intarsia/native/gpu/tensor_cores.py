"""Products of a DAG that tensor cores compute, with the elementwise operations behind them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from intarsia.ir.dtype import DType
from intarsia.ir.loop_walk import inner_scalars
from intarsia.ir.prim_func import (
    Arith,
    ArithOp,
    Cast,
    Intrinsic,
    Load,
    LoopVar,
    Scalar,
    Statement,
    Store,
)
from intarsia.native.dag import ComputeDAG
from intarsia.native.dag.respliced import respliced
from intarsia.native.gpu.elementwise_chain import chain_after, value_of_chain
from intarsia.native.gpu.tensor_core_convolution import with_convolutions
from intarsia.native.gpu.tensor_core_product import Factor, MatrixProduct, WarpTiling, tensor_core_product
from intarsia.native.te import ComputeOp, ExternOp, Tensor
from intarsia.native.tir.rewriting import Replacement

_NARROW: Final = (DType.FLOAT16, DType.BFLOAT16)
_LEAST_ROWS: Final = 8
"""Minimum number of rows: with fewer, most of a tile of 16 rows is zeros."""


def with_tensor_cores(dag: ComputeDAG, tiling: WarpTiling, *, tf32: bool = False) -> ComputeDAG:
    """Return a DAG in which operations with a kernel of their own compute products on tensor cores.

    These are sums in float32 of products of two matrices in float16, or two in bfloat16, also in words of
    two, and sums in int32 of products of words of four bytes. What reads such a product element by
    element, and nothing else does, is computed from the sums. Convolutions are such products as well.
    Other products stay.

    Args:
        dag: DAG before any step.
        tiling: Tiles of blocks and warps.
        tf32: Whether products of float32 are computed with factors of 11 significant bits as well.
    """
    while (matched := next(_products(dag, tf32), None)) is not None:
        dag = _with_kernel(dag, matched, tiling)
    return with_convolutions(dag, tiling)


def is_tensor_core_product(op: ComputeOp, *, tf32: bool = False) -> bool:
    """Return whether tensor cores compute an operation, as in `with_tensor_cores`."""
    return _sides(op, tf32) is not None


@dataclass(frozen=True, slots=True)
class _Side:
    """A factor of a product: its tensor, and the indices that it is read at."""

    tensor: Tensor
    indices: tuple[Scalar, ...]


def _products(dag: ComputeDAG, tf32: bool) -> Iterator[ComputeOp]:
    for op in dag.ops:
        if isinstance(op, ComputeOp) and _sides(op, tf32) is not None:
            yield op


def _sides(op: ComputeOp, tf32: bool = True) -> tuple[_Side, _Side] | None:
    """Return both factors of a product of matrices, left and right; None if it is no such product."""
    is_sum = op.combiner is not None and op.combiner.name == "sum" and len(op.buffers) == 1
    if not is_sum or len(op.reduce_axes) != 1 or len(op.axes) < 2:
        return None
    if op.axes[-2].extent < _LEAST_ROWS or _is_empty(op):
        return None
    is_ordered = False  # whether the first factor has to be the left one, since it alone is unsigned
    match op.dtypes[0], op.bodies[0]:
        case DType.FLOAT32, Arith(op=ArithOp.MUL, operands=(first, second)):
            allowed = {*_NARROW, DType.FLOAT32} if tf32 else {*_NARROW}
        case DType.FLOAT32, Intrinsic(name="dot_bf16", args=(first, second)):
            allowed = {DType.INT32}
        case DType.INT32, Intrinsic(name="dot_u8s8", args=(first, second)):
            allowed, is_ordered = {DType.INT32}, True
        case _:
            return None
    sides = [_side(op, scalar) for scalar in (first, second)]
    row, reduced = op.axes[-2].var, op.reduce_axes[0].var
    for left, right in (sides,) if is_ordered else (sides, reversed(sides)):
        if left is None or right is None or left.tensor.dtype is not right.tensor.dtype:
            return None
        if left.tensor.dtype not in allowed:
            return None
        is_product = left.indices[-2:] == (row, reduced) and _is_right(op, right)
        if is_product and all(_is_outer(op, index) for index in (*left.indices[:-2], *right.indices[:-2])):
            return left, right
    return None


def _is_empty(op: ComputeOp) -> bool:
    return any(axis.extent == 0 for axis in (*op.axes, *op.reduce_axes))


def _is_right(op: ComputeOp, side: _Side) -> bool:
    column, reduced = op.axes[-1].var, op.reduce_axes[0].var
    return side.indices[-2:] in ((reduced, column), (column, reduced))


def _is_outer(op: ComputeOp, index: Scalar) -> bool:
    """Return whether an index depends on nothing but the axes before the last two."""
    outer = {axis.var for axis in op.axes[:-2]}
    parts = inner_scalars(index)
    is_arithmetic = not any(isinstance(part, Load) for part in parts)
    return is_arithmetic and all(part in outer for part in parts if isinstance(part, LoopVar))


def _side(op: ComputeOp, scalar: Scalar) -> _Side | None:
    """Return a factor, without the operation that widens it."""
    loaded = _widened(scalar)
    if loaded is None:
        return None
    tensor = next(tensor for tensor in op.inputs if tensor.buffer == loaded.buffer)
    wide = tensor.op
    if isinstance(wide, ComputeOp) and wide.combiner is None and len(wide.bodies) == 1:
        inside = _widened(wide.bodies[0])
        if inside is not None and inside.buffer.dtype in _NARROW:
            at = dict(zip((axis.var for axis in wide.axes), loaded.indices, strict=True))
            indices = tuple(map(Replacement(counters=at).scalar, inside.indices))
            source = next(tensor for tensor in wide.inputs if tensor.buffer == inside.buffer)
            return _Side(source, indices) if len(indices) > 1 else None
    return _Side(tensor, loaded.indices) if len(loaded.indices) > 1 else None


def _widened(scalar: Scalar) -> Load | None:
    """Return the element that a scalar is, or is as float32."""
    if isinstance(scalar, Cast) and scalar.dtype is DType.FLOAT32:
        scalar = scalar.value
    return scalar if isinstance(scalar, Load) else None


def _with_kernel(dag: ComputeDAG, op: ComputeOp, tiling: WarpTiling) -> ComputeDAG:
    """Return the DAG with one product, and what follows it, as an operation with a kernel."""
    sides = _sides(op)
    assert sides is not None, "it was matched"
    left, right = sides
    chain = chain_after(dag, op)
    last = chain[-1]
    inputs = dict.fromkeys((left.tensor, right.tensor))
    value, more = value_of_chain(dag, chain)
    inputs |= dict.fromkeys(more)
    (result,), (sums,) = last.buffers, op.buffers

    def finish(total: Scalar, indices: Sequence[Scalar]) -> Statement:
        at = dict(zip((axis.var for axis in last.axes), indices, strict=True))
        numbered = Replacement(counters=at).scalar(value)
        sum_read = Load(sums, tuple(indices))
        return Store(result, tuple(indices), Replacement(scalars={sum_read: total}).scalar(numbered))

    product = MatrixProduct(
        op.shape,
        op.reduce_axes[0].extent,
        _factor(op, left, is_transposed=False),
        _factor(op, right, is_transposed=right.indices[-1] == op.reduce_axes[0].var),
        finish,
        op.dtypes[0],
    )
    body = tensor_core_product(product, tiling)
    kernel = ExternOp(last.name, last.buffers, body, tuple(inputs))
    listed = ComputeDAG(tuple(dict.fromkeys((*dag.tensors, *dag.outputs))), dag.ops)
    after = respliced(listed, dag.op_ids[last], [kernel], {Tensor(last): Tensor(kernel)}, {})
    return ComputeDAG(after.tensors)  # without the operations that nothing needs any more


def _factor(op: ComputeOp, side: _Side, *, is_transposed: bool) -> Factor:
    outer_axes = [axis.var for axis in op.axes[:-2]]

    def outer(matrix: Sequence[Scalar]) -> list[Scalar]:
        at = Replacement(counters=dict(zip(outer_axes, matrix, strict=True)))
        return [at.scalar(index) for index in side.indices[:-2]]

    return Factor(side.tensor.buffer, outer, is_transposed)
