"""Convolutions on tensor cores: products of the weights and the windows, which are never in memory.

The rows of the product are channels of the result, its columns positions, and it is reduced over channels of
the input and positions in the window. A block fills its tile of windows from the input, padding included.
Convolutions of bytes are summed by words of four channels, which are packed once, by another kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

from intarsia.ir.dtype import DType
from intarsia.ir.loop_walk import inner_scalars
from intarsia.ir.prim_func import Arith, ArithOp, Cast, Intrinsic, Load, LoopVar, Scalar, Statement, Store
from intarsia.native.dag import ComputeDAG
from intarsia.native.dag.respliced import respliced
from intarsia.native.gpu.elementwise_chain import chain_after, inlined, plain_op, value_of_chain
from intarsia.native.gpu.index_scalars import unflattened
from intarsia.native.gpu.tensor_core_product import Factor, MatrixProduct, WarpTiling, tensor_core_product
from intarsia.native.te import ComputeOp, ExternOp, Tensor
from intarsia.native.tir.rewriting import Replacement

_NARROW: Final = (DType.FLOAT16, DType.BFLOAT16)
_LEAST: Final = 16
"""Minimum number of channels, of positions, and of products of a sum."""
_WORD: Final = 4
"""Number of bytes of a word."""
_SPATIAL_FROM: Final = 2
"""Number of the first axis of positions, behind those of batch and channel."""


def with_convolutions(dag: ComputeDAG, tiling: WarpTiling) -> ComputeDAG:
    """Return a DAG in which operations with a kernel of their own compute convolutions.

    These are sums in float32 of products of float16 or bfloat16, and sums in int32 of products of words of
    four bytes, without groups.

    Args:
        dag: DAG before any step.
        tiling: Tiles of blocks and warps.
    """
    for op in dag.ops:
        windows = _windows(dag, op) if isinstance(op, ComputeOp) else None
        if windows is not None:
            return with_convolutions(_with_kernel(dag, windows, tiling), tiling)
    return dag


@dataclass(frozen=True, slots=True)
class _Windows:
    """A convolution of a DAG.

    Attributes:
        op: The operation that sums.
        weight: Weight, by the counters of the channel of the result and of the reduction.
        value: Element of a window, by the other counters, in the type of the weight.
    """

    op: ComputeOp
    weight: Load
    value: Scalar


def _windows(dag: ComputeDAG, op: ComputeOp) -> _Windows | None:
    """Return the convolution that an operation is; None if it is no such one."""
    is_sum = op.combiner is not None and op.combiner.name == "sum"
    if not is_sum or len(op.axes) <= _SPATIAL_FROM or len(op.reduce_axes) < _SPATIAL_FROM:
        return None
    depth, positions = prod(axis.extent for axis in op.reduce_axes), prod(op.shape[_SPATIAL_FROM:])
    if op.dtypes == (DType.INT32,):
        depth *= _WORD
    if min(op.shape[1], depth, positions) < _LEAST or not op.shape[0]:
        return None
    cheap = {inner.buffers[0]: inner for inner in map(plain_op, dag.ops) if inner is not None}
    match op.dtypes[0], op.bodies[0]:
        case DType.INT32, Intrinsic(name="dot_u8s8", args=(window, weight)):
            words = {buffer: inner for buffer, inner in cheap.items() if _loads(inner.bodies[0]) == 1}
            return _matched_words(op, inlined(window, words), weight)
        case DType.FLOAT32, Arith(op=ArithOp.MUL, operands=(first, second)):
            for window, weight in ((first, second), (second, first)):
                windows = _matched(op, inlined(window, cheap), inlined(weight, cheap))
                if windows is not None:
                    return windows
    return None


def _matched(op: ComputeOp, window: Scalar, weight: Scalar) -> _Windows | None:
    channel, reduced = op.axes[1].var, tuple(axis.var for axis in op.reduce_axes)
    if channel in _counters(window):
        return None
    match weight:
        case Cast(value=Load(indices=indices) as load) if indices == (channel, *reduced):
            loads = {part.buffer for part in inner_scalars(window) if isinstance(part, Load)}
            is_one_type = {buffer.dtype for buffer in loads} == {load.buffer.dtype}
            if len(loads) == 1 and is_one_type and load.buffer.dtype in _NARROW:
                return _Windows(op, load, Cast(window, load.buffer.dtype))
    return None


def _matched_words(op: ComputeOp, window: Scalar, weight: Scalar) -> _Windows | None:
    channel, reduced = op.axes[1].var, tuple(axis.var for axis in op.reduce_axes)
    is_weight = isinstance(weight, Load) and weight.indices == (channel, *reduced)
    is_window = _loads(window) == 1 and channel not in _counters(window)
    return _Windows(op, weight, window) if isinstance(weight, Load) and is_weight and is_window else None


def _loads(scalar: Scalar) -> int:
    """Return the number of different elements that a scalar reads."""
    return sum(isinstance(part, Load) for part in inner_scalars(scalar))


def _counters(scalar: Scalar) -> set[LoopVar]:
    return {part for part in inner_scalars(scalar) if isinstance(part, LoopVar)}


def _with_kernel(dag: ComputeDAG, windows: _Windows, tiling: WarpTiling) -> ComputeDAG:
    op = windows.op
    chain = chain_after(dag, op)
    last = chain[-1]
    value, more = value_of_chain(dag, chain)
    (result,), (sums,) = last.buffers, op.buffers
    batch, channels, *spatial = op.shape
    inner = [axis.extent for axis in op.reduce_axes]
    depth, positions = prod(inner), prod(spatial)
    reduced = [axis.var for axis in op.reduce_axes]

    def finish(total: Scalar, indices: Sequence[Scalar]) -> Statement:
        number, channel, position = indices
        at = (number, channel, *unflattened(position, spatial))
        numbered = Replacement(counters=dict(zip((axis.var for axis in last.axes), at, strict=True)))
        return Store(result, at, Replacement(scalars={Load(sums, at): total}).scalar(numbered.scalar(value)))

    def weight(matrix: Sequence[Scalar], channel: Scalar, step: Scalar) -> Scalar:  # noqa: ARG001
        return Load(windows.weight.buffer, (channel, *unflattened(step, inner)))

    def window(matrix: Sequence[Scalar], step: Scalar, position: Scalar) -> Scalar:
        at = dict(zip(reduced, unflattened(step, inner), strict=True))
        at[op.axes[0].var] = matrix[0]
        positions_at = unflattened(position, spatial)
        at |= dict(zip((axis.var for axis in op.axes[_SPATIAL_FROM:]), positions_at, strict=True))
        return Replacement(counters=at).scalar(windows.value)

    source = next(part.buffer for part in inner_scalars(windows.value) if isinstance(part, Load))
    product = MatrixProduct(
        (batch, channels, positions),
        depth,
        Factor(windows.weight.buffer, tuple, limits=(channels, depth), value=weight),
        Factor(source, tuple, limits=(depth, positions), value=window),
        finish,
        op.dtypes[0],
        is_left_signed=op.dtypes[0] is DType.INT32,
    )
    tensors = {
        tensor.buffer: tensor
        for inner_op in dag.ops
        if isinstance(inner_op, ComputeOp)
        for tensor in inner_op.inputs
    }
    inputs = dict.fromkeys((tensors[source], tensors[windows.weight.buffer], *more))
    kernel = ExternOp(last.name, last.buffers, tensor_core_product(product, tiling), tuple(inputs))
    listed = ComputeDAG(tuple(dict.fromkeys((*dag.tensors, *dag.outputs))), dag.ops)
    after = respliced(listed, dag.op_ids[last], [kernel], {Tensor(last): Tensor(kernel)}, {})
    return ComputeDAG(after.tensors)  # without the operations that nothing needs any more
