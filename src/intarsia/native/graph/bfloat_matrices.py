"""Products of two computed matrices of bfloat16 numbers, such as those of attention, by words of two.

    MatMul(Transpose(x), Transpose(y))   ->   PairProduct(Transpose(words of x), Transpose(words of y))

Where the sum runs along the last dimension of a stored matrix, its words are there already, and are moved as
they are. Words of other matrices are packed where they are used: of rows that the kernel computes, such as
the shares of a softmax, and of pairs of rows of a right matrix.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from intarsia.ir import DType, TensorType, Var
from intarsia.native.graph.batched_integers import BatchedStep
from intarsia.native.graph.bfloat_steps import PAIR
from intarsia.native.graph.channel_shuffle import permuted_axes
from intarsia.native.graph.integer_steps import IntegerStep, WordProduct
from intarsia.native.graph.region_plan import RegionValue
from intarsia.native.graph.step_declaration import StepDeclaration
from intarsia.native.graph.straight_line import KernelStep, StraightLine
from intarsia.native.te import Tensor
from intarsia.native.te.operators.bfloat_sums import (
    pairs_of_columns,
    pairs_of_rows,
    product_of_matrices,
)

_LEAST_ROWS: Final = 16
"""Minimum number of rows of a product: with fewer, rounding and packing take as long as they save."""
_LEAST_SUM: Final = 8
"""Minimum number of products of a sum, and of columns, for the same reason."""
_COMPUTED_ROWS: Final = "Softmax"
"""Operator whose result the kernel of attention keeps to itself, so that it is rounded there."""


@dataclass(frozen=True, slots=True, eq=False)
class PairProduct(KernelStep):
    """A MatMul of two computed matrices rounded to bfloat16, with the result in float32.

    Attributes:
        are_words: Whether the left and the right argument are words of two numbers; else numbers.
    """

    are_words: tuple[bool, bool]


@dataclass(frozen=True, slots=True)
class Operand:
    """A matrix of such a product.

    Attributes:
        source: Number of the value that is moved.
        moves: Transpositions in order, and shapes in which their results are seen.
        are_words: Whether words of the source are moved.
        is_stored: Whether the source is rounded where it is stored.
    """

    source: int
    moves: tuple[KernelStep | tuple[int, ...], ...]
    are_words: bool
    is_stored: bool


@dataclass(eq=False)
class DeclaredPairs(StepDeclaration):
    """Declares a product of matrices of bfloat16 numbers."""

    step: PairProduct

    def result(self) -> Tensor:
        """Declare the result, and record its placeholders."""
        left, right = self.tensor_of(0), self.tensor_of(1)
        if not self.step.are_words[0]:
            left = pairs_of_rows(left, f"{self.name}.left")
        if not self.step.are_words[1]:
            right = pairs_of_columns(right, f"{self.name}.right")
        return product_of_matrices(left, right, self.name)


def operands(line: StraightLine, *, narrows: bool) -> Mapping[int, tuple[Operand, Operand]]:
    """Return the matrices of the products of a region that pairs of bfloat16 numbers compute, by position.

    Args:
        line: The region.
        narrows: Whether products of float32 are computed so as well.
    """
    makers = {output: step for step in line.steps for output in step.outputs}
    return {
        position: (
            _operand(step.args[0], makers, line.values, -1),
            _operand(step.args[1], makers, line.values, -2),
        )
        for position, step in enumerate(line.steps)
        if _is_product(step, line.values, narrows=narrows)
    }


def needless_moves(line: StraightLine, matrices: Mapping[int, tuple[Operand, Operand]]) -> frozenset[int]:
    """Return the positions of transpositions that only these products read, which move words instead."""
    moves = {
        move.outputs[0]: move
        for pair in matrices.values()
        for operand in pair
        for move in operand.moves
        if isinstance(move, KernelStep)
    }
    used = {line.values[number].same_as for number in line.results}
    for position in reversed(range(len(line.steps))):
        step = line.steps[position]
        if position not in matrices and not (step.outputs[0] in moves and step.outputs[0] not in used):
            used.update(line.values[arg].same_as for arg in step.args if arg is not None)
    return frozenset(
        position
        for position, step in enumerate(line.steps)
        if step.outputs[0] in moves and step.outputs[0] not in used
    )


def _is_product(step: KernelStep, values: Sequence[RegionValue], *, narrows: bool) -> bool:
    if str(step.op) != "MatMul" or isinstance(step, BatchedStep | IntegerStep | WordProduct):
        return False
    left, right = (values[arg] for arg in step.args if arg is not None)
    shapes = left.type.static_shape, right.type.static_shape
    if left.constant is not None or right.constant is not None or any(len(shape) < 2 for shape in shapes):
        return False
    dtypes = {left.type.dtype, right.type.dtype}
    if dtypes != {DType.BFLOAT16} and not (narrows and dtypes == {DType.FLOAT32}):
        return False
    (rows, depth), columns = shapes[0][-2:], shapes[1][-1]
    is_full = 0 not in shapes[0] and 0 not in shapes[1]
    return is_full and rows >= _LEAST_ROWS and min(depth, columns) >= _LEAST_SUM


def _operand(
    number: int | None, makers: Mapping[int, KernelStep], values: Sequence[RegionValue], axis: int
) -> Operand:
    """Return a matrix, with the moves that make it of another value.

    Args:
        number: Number of the matrix.
        makers: Step that computes each value.
        values: Values of the region.
        axis: Dimension of its sum, from the end.
    """
    assert number is not None, "a product has two matrices"
    moves: list[KernelStep | tuple[int, ...]] = []
    source, summed = number, axis
    while True:
        value, shape = values[source], values[source].type.static_shape
        maker = makers.get(value.same_as)
        if maker is None or str(maker.op) != "Transpose" or maker.args[0] is None:
            break
        moved = values[value.same_as].type.static_shape
        if source != value.same_as:
            if moved[-2:] != shape[-2:] or summed < -2:
                break
            moves.append(shape)
        order = permuted_axes(maker, len(moved))
        source, summed = maker.args[0], order[summed] - len(moved)
        moves.append(maker)
    extent = values[source].type.static_shape[summed]
    maker = makers.get(values[source].same_as)
    is_inside = maker is not None and str(maker.op) == _COMPUTED_ROWS and not moves and axis == -1
    are_words = summed == -1 and extent % PAIR == 0 and not is_inside
    return Operand(source, tuple(reversed(moves)), are_words, not is_inside)


def with_moves(operand: Operand, number: int, values: list[RegionValue], steps: list[KernelStep]) -> int:
    """Add what makes the matrix of a product of a rounded value, and return its number.

    Args:
        operand: The matrix.
        number: Number of its source, as bfloat16 numbers where it is stored so.
        values: Values of the region, to which those of the steps are added.
        steps: Steps of the region, likewise.
    """
    axis, pair = -1, 1
    if operand.are_words:
        pair = PAIR
        number = _added(_in_words(values[number].type.static_shape, axis, pair), DType.INT32, number, values)
    for move in operand.moves:
        dtype = values[number].type.dtype
        if isinstance(move, tuple):
            number = _added(_in_words(move, axis, pair), dtype, number, values)
            continue
        given = Var(f"x{number}", checked_type=values[number].type)
        order = permuted_axes(move, len(values[number].type.static_shape))
        axis = order.index(axis + len(order)) - len(order)
        shape = tuple(values[number].type.static_shape[place] for place in order)
        result = _added(shape, dtype, None, values)
        changed = replace(move.call, args=(given,), checked_type=values[result].type)
        steps.append(replace(move, call=changed, args=(number,), outputs=(result,)))
        number = result
    return number


def _in_words(shape: tuple[int, ...], axis: int, pair: int) -> tuple[int, ...]:
    """Return a shape with fewer elements along an axis, which is counted from the end."""
    position = len(shape) + axis
    return (*shape[:position], shape[position] // pair, *shape[position + 1 :])


def _added(shape: tuple[int, ...], dtype: DType, of: int | None, values: list[RegionValue]) -> int:
    """Add a value, or a view of another one, and return its number."""
    same_as = len(values) if of is None else values[of].same_as
    values.append(RegionValue(TensorType(shape, dtype), same_as))
    return len(values) - 1
