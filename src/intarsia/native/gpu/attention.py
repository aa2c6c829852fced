"""Attention in a DAG, two products with a softmax between them, as one kernel.

The softmax is that of a row: the largest score, exponentials, their total, and weights that are exponentials
times a factor of the row. The weighted sums of exponentials divided by their total are the same, so that
weights are made of the last sums only. Scores and what follows the result may be computed element by element.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from intarsia.ir.dtype import DType
from intarsia.ir.loop_walk import inner_scalars
from intarsia.ir.prim_func import (
    Arith,
    ArithOp,
    Buffer,
    Cast,
    Intrinsic,
    Literal,
    Load,
    LoopVar,
    Scalar,
    Statement,
    Store,
)
from intarsia.native.dag import ComputeDAG
from intarsia.native.dag.respliced import respliced
from intarsia.native.gpu.attention_kernel import Attention, Operand, attention_kernel
from intarsia.native.gpu.attention_layouts import choose_layout
from intarsia.native.gpu.elementwise_chain import chain_after, inlined, plain_op, value_of_chain
from intarsia.native.gpu.kernel_list import DECLARED_SHARED_BYTES, MOST_SHARED_BYTES
from intarsia.native.te import ComputeOp, ExternOp, IterVar, Operation, Tensor
from intarsia.native.tir.rewriting import Replacement

_LEAST_ROWS: Final = 8
"""Minimum number of queries: with fewer, products that share the keys among all threads are better."""
_NARROW: Final = (DType.FLOAT16, DType.BFLOAT16)
_MAXIMA: Final = ("max", "largest_number")


def with_attention(dag: ComputeDAG, *, has_tensor_cores: bool = True) -> ComputeDAG:
    """Return a DAG in which each attention that a block's memory has room for is an operation with a kernel.

    Args:
        dag: DAG before any step.
        has_tensor_cores: Whether products of float16 and bfloat16 are computed on tensor cores.
    """
    for op in dag.ops:
        matched = _matched(dag, op) if isinstance(op, ComputeOp) else None
        after = None if matched is None else _with_kernel(dag, matched, has_tensor_cores)
        if after is not None:
            return with_attention(after, has_tensor_cores=has_tensor_cores)
    return dag


@dataclass(frozen=True, slots=True)
class _Matched:
    """An attention of a DAG.

    Attributes:
        products: Products of queries and keys.
        queries: Factor of a product that depends on its row.
        keys: Factor of a product that depends on its column.
        scores: Operations from the products to the scores, element by element.
        exponentials: Exponentials of the scores.
        total: Totals of the exponentials.
        weight: Weight of a key as a function of its exponential and the total.
        result: Weighted sums of values.
        values: Factor of a weighted sum that depends on its column.
    """

    products: ComputeOp
    queries: Scalar
    keys: Scalar
    scores: tuple[ComputeOp, ...]
    exponentials: ComputeOp
    total: ComputeOp
    weight: Scalar
    result: ComputeOp
    values: Scalar


def _matched(dag: ComputeDAG, result: ComputeOp) -> _Matched | None:
    """Return the attention whose weighted sums an operation computes; None if it is no such one."""
    factors = _factors(result)
    if factors is None:
        return None
    ops = {op.buffers[0]: plain for op in dag.ops if (plain := plain_op(op)) is not None}
    exponentials = {buffer: op for buffer, op in ops.items() if _is_exponential(op)}
    weight = inlined(factors[0], {buffer: op for buffer, op in ops.items() if buffer not in exponentials})
    loads = [part for part in inner_scalars(weight) if isinstance(part, Load)]
    of_scores = {load for load in loads if load.buffer in exponentials}
    row, reduced = result.axes[:-1], result.reduce_axes[0].var
    if len(of_scores) != 1 or not _are_at(next(iter(of_scores)).indices, (*row, *result.reduce_axes)):
        return None
    (exponential,) = of_scores
    others = {load for load in loads if load != exponential}
    if not _is_multiple(weight, exponential) or any(reduced in _vars(load) for load in others):
        return None
    softmax = _softmax(dag, exponentials[exponential.buffer])
    if softmax is None:
        return None
    scores, total = softmax
    products = scores[0]
    factors_of_products = _factors(products)
    is_whole = all(_are_at(load.indices, row) for load in others if load.buffer == total.buffers[0])
    if factors_of_products is None or not is_whole or products.shape[:-1] != result.shape[:-1]:
        return None
    return _Matched(
        *(products, *factors_of_products, tuple(scores), exponentials[exponential.buffer], total),
        *(weight, result, factors[1]),
    )


def _are_at(indices: Sequence[Scalar], axes: Sequence[IterVar]) -> bool:
    """Return whether indices are those of axes; that of an axis of one element may be 0."""
    zero = Literal(0, DType.INT64)
    return len(indices) == len(axes) and all(
        index == axis.var or (axis.extent == 1 and index == zero)
        for index, axis in zip(indices, axes, strict=True)
    )


def _factors(op: ComputeOp) -> tuple[Scalar, Scalar] | None:
    """Return both factors of a product of matrices: that of its rows, and that of its columns."""
    is_sum = op.combiner is not None and op.combiner.name == "sum" and op.dtypes == (DType.FLOAT32,)
    if not is_sum or len(op.reduce_axes) != 1 or len(op.axes) < 2 or op.axes[-2].extent < _LEAST_ROWS:
        return None
    if any(axis.extent == 0 for axis in (*op.axes, *op.reduce_axes)):
        return None
    match op.bodies[0]:
        case Arith(op=ArithOp.MUL, operands=(first, second)):
            row, column = op.axes[-2].var, op.axes[-1].var
            for left, right in ((first, second), (second, first)):
                used = _vars(left), _vars(right)
                if row in used[0] and column not in used[0] and column in used[1] and row not in used[1]:
                    return left, right
    return None


def _vars(scalar: Scalar) -> set[LoopVar]:
    return {part for part in inner_scalars(scalar) if isinstance(part, LoopVar)}


def _is_exponential(op: ComputeOp) -> bool:
    """Return whether each element is the exponential of one in its place minus something of its row."""
    match op.bodies[0]:
        case Intrinsic(name="exp", args=(Arith(op=ArithOp.SUB, operands=(Load(indices=indices), offset)),)):
            return indices == tuple(axis.var for axis in op.axes) and op.axes[-1].var not in _vars(offset)
    return False


def _is_multiple(scalar: Scalar, element: Load) -> bool:
    """Return whether a scalar is an element times something that does not depend on it."""
    if scalar == element:
        return True
    match scalar:
        case Arith(op=ArithOp.MUL, operands=(left, right)):
            sides = ((left, right), (right, left))
            return any(_is_multiple(side, element) and not _has(other, element) for side, other in sides)
        case Arith(op=ArithOp.DIV, operands=(left, right)):
            return _is_multiple(left, element) and not _has(right, element)
        case Arith(op=ArithOp.SELECT, operands=(cond, Literal(value=0), value)):
            return not _has(cond, element) and _is_multiple(value, element)
        case Cast():
            return scalar.dtype.is_float and _is_multiple(scalar.value, element)
        case _:
            return False


def _has(scalar: Scalar, element: Load) -> bool:
    return element in inner_scalars(scalar)


def _softmax(dag: ComputeDAG, exponentials: ComputeOp) -> tuple[list[ComputeOp], ComputeOp] | None:
    """Return the operations from a product to the scores of exponentials, and the total of these."""
    match exponentials.bodies[0]:
        case Intrinsic(args=(Arith(operands=(Load(buffer=scores), offset)),)):
            largest = [op for op in dag.ops if _reduces_rows(op, scores, _MAXIMA)]
            totals = [op for op in dag.ops if _reduces_rows(op, exponentials.buffers[0], ("sum",))]
            read = {part.buffer for part in inner_scalars(offset) if isinstance(part, Load)}
            if len(largest) != 1 or len(totals) != 1 or read != {largest[0].buffers[0]}:
                return None
            for op in dag.ops:
                chain = chain_after(dag, op) if isinstance(op, ComputeOp) and op.reduce_axes else []
                if chain and chain[-1].buffers[0] == scores and isinstance(totals[0], ComputeOp):
                    return chain, totals[0]
    return None


def _reduces_rows(op: Operation, rows: Buffer, combiners: Sequence[str]) -> bool:
    """Return whether an operation reduces the rows of a buffer as they are."""
    if not isinstance(op, ComputeOp) or op.combiner is None or op.combiner.name not in combiners:
        return False
    indices = tuple(axis.var for axis in (*op.axes, *op.reduce_axes))
    return len(op.reduce_axes) == 1 and op.bodies == (Load(rows, indices),)


def _with_kernel(dag: ComputeDAG, matched: _Matched, has_tensor_cores: bool) -> ComputeDAG | None:
    """Return the DAG with an attention as one kernel; None if shared memory has no room for it."""
    moves = {
        op.buffers[0]: plain
        for op in dag.ops
        if (plain := plain_op(op)) is not None and _is_move(plain.bodies[0])
    }
    queries, keys, values = (inlined(each, moves) for each in (matched.queries, matched.keys, matched.values))
    narrow = {_narrow_type(each) for each in (queries, keys, values)}
    is_wide = len(narrow) > 1 or None in narrow or not has_tensor_cores
    dtype = DType.FLOAT32 if is_wide else next(iter(narrow))
    assert dtype is not None, "None is no narrow type"
    products, result = matched.products, matched.result
    rows, count = products.shape[-2:]
    depth, columns = products.reduce_axes[0].extent, result.shape[-1]
    sizes = (DECLARED_SHARED_BYTES, MOST_SHARED_BYTES)  # small blocks leave room for others
    layouts = (choose_layout(rows, count, depth, columns, dtype, size) for size in sizes)
    layout = next((layout for layout in layouts if layout is not None), None)
    if layout is None:
        return None
    chain = chain_after(dag, result)
    value, more = value_of_chain(dag, chain)
    score, score_inputs = value_of_chain(dag, matched.scores)
    element = _Elements(matched, chain[-1], score, value)
    row, column, reduced = products.axes[-2].var, products.axes[-1].var, products.reduce_axes[0].var
    value_row, value_column = result.reduce_axes[0].var, result.axes[-1].var
    outer = tuple(axis.var for axis in products.axes[:-2])
    value_outer = tuple(axis.var for axis in result.axes[:-2])
    attention = Attention(
        *(products.shape[:-2], rows, count, depth, columns, dtype),
        _operand(queries, dtype, outer, (row, reduced)),
        _operand(keys, dtype, outer, (column, reduced)),
        _operand(values, dtype, value_outer, (value_row, value_column)),
        element.score,
        element.finish,
    )
    body = attention_kernel(attention, layout)
    last = chain[-1]
    tensors = {tensor.buffer: tensor for op in dag.ops for tensor in _read_by(op)}
    read = [queries, keys, values, matched.weight]
    loads = [part.buffer for scalar in read for part in inner_scalars(scalar) if isinstance(part, Load)]
    inside = {matched.exponentials.buffers[0], matched.total.buffers[0]}
    inputs = dict.fromkeys(tensors[buffer] for buffer in loads if buffer not in inside)
    inputs |= dict.fromkeys((*score_inputs, *more))
    kernel = ExternOp(last.name, last.buffers, body, tuple(inputs))
    listed = ComputeDAG(tuple(dict.fromkeys((*dag.tensors, *dag.outputs))), dag.ops)
    after = respliced(listed, dag.op_ids[last], [kernel], {Tensor(last): Tensor(kernel)}, {})
    return ComputeDAG(after.tensors)  # without the operations that nothing needs any more


def _read_by(op: Operation) -> Sequence[Tensor]:
    return op.inputs if isinstance(op, (ComputeOp, ExternOp)) else ()


def _is_move(scalar: Scalar) -> bool:
    """Return whether a scalar is an element, perhaps in another type of floats."""
    return isinstance(scalar.value if isinstance(scalar, Cast) else scalar, Load)


def _narrow_type(scalar: Scalar) -> DType | None:
    """Return the type of an element of float16 or bfloat16 that is widened; None for others."""
    match scalar:
        case Cast(value=Load(buffer=buffer), dtype=DType.FLOAT32) if buffer.dtype in _NARROW:
            return buffer.dtype
    return None


def _operand(
    scalar: Scalar, dtype: DType, outer: Sequence[LoopVar], inner: tuple[LoopVar, LoopVar]
) -> Operand:
    """Return a matrix in the element type of the tiles, by the counters of its rows and columns."""
    if dtype is not DType.FLOAT32:
        assert isinstance(scalar, Cast), "narrow elements are widened"
        scalar = scalar.value

    def value(matrix: Sequence[Scalar], row: Scalar, column: Scalar) -> Scalar:
        at = dict(zip((*outer, *inner), (*matrix, row, column), strict=True))
        return Replacement(counters=at).scalar(scalar)

    loads = [part for part in inner_scalars(scalar) if isinstance(part, Load) and part.indices]
    return Operand(value, bool(loads) and inner[0] in _vars(loads[-1].indices[-1]))


@dataclass(frozen=True, slots=True)
class _Elements:
    """The functions of single elements.

    Attributes:
        matched: The attention.
        last: Operation that computes the result of the kernel.
        value_of_score: Score as a function of a product.
        value_of_result: Result as a function of a weighted sum.
    """

    matched: _Matched
    last: ComputeOp
    value_of_score: Scalar
    value_of_result: Scalar

    def score(self, product: Scalar, matrix: Sequence[Scalar], row: Scalar, key: Scalar) -> Scalar:
        """Return the score of a product."""
        op = self.matched.scores[-1]
        return _at(op, self.value_of_score, (*matrix, row, key), {self.matched.products.buffers[0]: product})

    def finish(
        self, weighted: Scalar, total: Scalar, matrix: Sequence[Scalar], row: Scalar, column: Scalar
    ) -> Statement:
        """Return the statement that stores what becomes of a sum that exponentials have weighted."""
        matched, indices = self.matched, (*matrix, row, column)
        parts: dict[Buffer, Scalar] = {
            matched.exponentials.buffers[0]: weighted,
            matched.total.buffers[0]: total,
        }
        result = _at(matched.result, matched.weight, indices, parts)
        value = _at(self.last, self.value_of_result, indices, {matched.result.buffers[0]: result})
        return Store(self.last.buffers[0], indices, value)


def _at(
    op: ComputeOp, scalar: Scalar, indices: Sequence[Scalar], elements: Mapping[Buffer, Scalar]
) -> Scalar:
    """Return a scalar of an operation at an element, with other scalars in place of elements of buffers."""
    numbered = Replacement(counters=dict(zip((axis.var for axis in op.axes), indices, strict=True)))
    scalar = numbered.scalar(scalar)
    placed: dict[Scalar, Scalar] = {
        part: elements[part.buffer]
        for part in inner_scalars(scalar)
        if isinstance(part, Load) and part.buffer in elements
    }
    return Replacement(scalars=placed).scalar(scalar) if placed else scalar
