"""Products of transposed matrices and few columns as rows times the matrices as they are.

    MatMul(Transpose(A), x), x (..., K, 1)   ->   MatMul(x, A), x as (..., 1, K), the result as (..., M, 1)
    MatMul(Transpose(A), B), B (..., K, N)   ->   Transpose(MatMul(Transpose(B), A))

A vector has the same elements as a row and as a column, and the transposed copy is not needed. Of few columns
the transposed matrix and result are small, and vectors run along M instead of N.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from intarsia.ir import DType, TensorType, Var
from intarsia.native.graph.channel_shuffle import permuted_axes
from intarsia.native.graph.region_plan import RegionValue
from intarsia.native.graph.straight_line import KernelStep, StraightLine
from intarsia.op import call

_LEAST_GAIN: Final = 2
"""Ratio of moved elements from which a product is transposed itself.

Of 22 products those above it took 0.20 to 0.99 of the time, the others 0.83 to 1.03 (Zen 5).
"""


def with_row_products(line: StraightLine) -> StraightLine:
    """Return a region in which no matrix is transposed for a product with few columns only."""
    values, steps = list(line.values), list[KernelStep]()
    reads = Counter(number for step in line.steps for number in step.args)
    reads.update(line.results)
    reads.update(value.same_as for number, value in enumerate(values) if value.same_as != number)
    # A product that is read in another shape stays: a view of a view has no memory of its own.
    viewed = {value.same_as for number, value in enumerate(values) if value.same_as != number}
    moves = {step.outputs[0]: step for step in line.steps if str(step.op) == "Transpose"}
    for step in line.steps:
        move = moves.get(step.args[0]) if str(step.op) == "MatMul" and step.args[0] is not None else None
        if move is None or reads[move.outputs[0]] > 1 or not _is_turned_product(step, move, values):
            steps.append(step)
            continue
        right = moves.get(step.args[1]) if step.args[1] is not None else None
        right = None if right is None or not _is_turned(right, values) else right
        if values[step.outputs[0]].type.static_shape[-1] == 1:
            if step.outputs[0] in viewed:
                steps.append(step)
                continue
            steps.remove(move)
            steps.append(_row_product(step, move, values))
        elif _pays_transposed(step, values, is_moved=right is not None):
            steps.remove(move)
            if right is not None and reads[right.outputs[0]] == 1:
                steps.remove(right)
            steps += _transposed_product(step, move, right, values)
        else:
            steps.append(step)
    return StraightLine(values, steps, line.params, line.results)


def _is_turned_product(step: KernelStep, move: KernelStep, values: Sequence[RegionValue]) -> bool:
    """Return whether matrices whose last dimensions are exchanged are multiplied by variable matrices."""
    matrix, other = move.args[0], step.args[1]
    if matrix is None or other is None or values[other].type.dtype is not DType.FLOAT32:
        return False
    shape, right = values[matrix].type.static_shape, values[other].type.static_shape
    if len(shape) < 2 or len(right) != len(shape) or right[:-2] != shape[:-2]:
        return False
    return _is_turned(move, values) and (right[-1] == 1 or values[other].constant is None)


def _is_turned(move: KernelStep, values: Sequence[RegionValue]) -> bool:
    """Return whether a Transpose exchanges the last two dimensions."""
    if move.args[0] is None:
        return False
    rank = len(values[move.args[0]].type.static_shape)
    return permuted_axes(move, rank) == (*range(rank - 2), rank - 1, rank - 2)


def _pays_transposed(step: KernelStep, values: Sequence[RegionValue], *, is_moved: bool) -> bool:
    """Return whether fewer elements are moved where the result is transposed, not the left matrix.

    Args:
        step: The product.
        values: Values of the region.
        is_moved: Whether the right matrix is a transposed one, which is read where it was.
    """
    left, right = (values[arg].type.static_shape for arg in step.args if arg is not None)
    (rows, depth), columns = left[-2:], right[-1]
    moved = columns * (rows if is_moved else rows + depth)
    return moved * _LEAST_GAIN <= rows * depth


def _transposed_product(
    step: KernelStep, move: KernelStep, right: KernelStep | None, values: list[RegionValue]
) -> tuple[KernelStep, ...]:
    """Return the product of the exchanged matrices, with the moves of the right matrix and of the result.

    Args:
        step: The product.
        move: Transposition of its left matrix.
        right: Transposition of its right matrix; None if there is none.
        values: Values of the region, to which those of the steps are added.
    """
    matrix, other = move.args[0], step.args[1] if right is None else right.args[0]
    assert matrix is not None, "the caller has looked"
    assert other is not None, "the caller has looked"
    steps: list[KernelStep] = []
    if right is None:
        steps.append(_moved(move, other, _added(_turned_type(values[other].type), values), values))
        (other,) = steps[0].outputs
    result = _added(_turned_type(values[step.outputs[0]].type), values)
    given = [Var(f"x{arg}", checked_type=values[arg].type) for arg in (other, matrix)]
    changed = replace(step.call, args=tuple(given), checked_type=values[result].type)
    steps.append(replace(step, call=changed, args=(other, matrix), outputs=(result,)))
    return (*steps, _moved(move, result, step.outputs[0], values))


def _turned_type(type_: TensorType) -> TensorType:
    *lead, rows, columns = type_.static_shape
    return TensorType((*lead, columns, rows), type_.dtype)


def _added(type_: TensorType, values: list[RegionValue]) -> int:
    """Add a value, and return its number."""
    values.append(RegionValue(type_, len(values)))
    return len(values) - 1


def _moved(move: KernelStep, source: int, result: int, values: Sequence[RegionValue]) -> KernelStep:
    """Return a Transpose of another value of the same rank."""
    given = Var(f"x{source}", checked_type=values[source].type)
    changed = replace(move.call, args=(given,), checked_type=values[result].type)
    return replace(move, call=changed, args=(source,), outputs=(result,))


def _row_product(step: KernelStep, move: KernelStep, values: list[RegionValue]) -> KernelStep:
    """Return the product of a row, and make the value of the product by columns a view of its result."""
    matrix, column = move.args[0], step.args[1]
    assert matrix is not None, "the caller has looked"
    assert column is not None, "the caller has looked"
    row = _viewed(values[column], values)
    result = values[step.outputs[0]].type.static_shape
    swapped = TensorType((*result[:-2], result[-1], result[-2]), DType.FLOAT32)
    number = len(values)
    values.append(RegionValue(swapped, number))
    values[step.outputs[0]] = replace(values[step.outputs[0]], same_as=number)
    given = [Var(f"x{arg}", checked_type=values[arg].type) for arg in (row, matrix)]
    product = call("MatMul", *given)
    changed = replace(step.call, op=product.op, args=product.args, checked_type=swapped)
    return replace(step, call=changed, args=(row, matrix), outputs=(number,))


def _viewed(column: RegionValue, values: list[RegionValue]) -> int:
    """Add a view of columns as rows, and return its number."""
    shape = column.type.static_shape
    rows = (*shape[:-2], 1, shape[-2])
    constant = None if column.constant is None else column.constant.reshape(rows)
    number = len(values)
    same_as = number if constant is not None else column.same_as
    values.append(RegionValue(TensorType(rows, DType.FLOAT32), same_as, constant))
    return number
