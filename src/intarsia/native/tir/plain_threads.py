"""Statements of GPU threads as loops and stores, which compute the same where threads run in turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from intarsia.ir.dtype import DType
from intarsia.ir.prim_func import (
    Allocate,
    Arith,
    ArithOp,
    AsyncCommit,
    AsyncCopy,
    AsyncWait,
    Block,
    Cast,
    For,
    IfThenElse,
    Intrinsic,
    Literal,
    Load,
    LoopVar,
    Mma,
    Scalar,
    Statement,
    Store,
)
from intarsia.ir.warp import MMA_SUMS, WARP
from intarsia.native.tir.rewriting import Indices, block, flat, with_body, with_branches

_QUAD: Final = 4
"""Number of threads that hold the sums of one row."""


@dataclass(frozen=True, slots=True)
class PlainThreads:
    """Conversion of the statements of one kernel's threads.

    Attributes:
        thread: Counter of the threads.
        step: Counter of new loops, which no loop around them has.
    """

    thread: LoopVar
    step: LoopVar

    def statement(self, statement: Statement) -> Statement:
        """Return a statement in which copies are done where they start, and threads multiply alone."""
        match statement:
            case AsyncCopy():
                return block([_copied_element(statement, number) for number in range(statement.width)])
            case AsyncCommit() | AsyncWait():
                return Block(())
            case Mma():
                sums = [self._added(statement, element) for element in range(MMA_SUMS)]
                return For(self.step, statement.depth, block(sums))
            case Block():
                return block([self.statement(inner) for inner in flat(statement)])
            case For() | Allocate():
                return with_body(statement, self.statement(statement.body))
            case IfThenElse(otherwise=otherwise):
                second = None if otherwise is None else self.statement(otherwise)
                return with_branches(statement, self.statement(statement.then), second)
            case _:
                return statement

    def _added(self, mma: Mma, element: int) -> Store:
        """Return the store that adds the product of one step to one of the thread's sums."""
        row, column = row_of_sum(self.thread, element), column_of_sum(self.thread, element)
        left = _moved(mma.left, row, self.step)
        right = _moved(mma.right, *((column, self.step) if mma.is_right_transposed else (self.step, column)))
        sums = Load(mma.sums.buffer, _shifted(mma.sums.indices, element))
        product: Scalar = Arith(ArithOp.MUL, (_as_float32(left), _as_float32(right)))
        if left.buffer.dtype is DType.INT32:
            name = "dot_u8s8" if sums.buffer.dtype is DType.INT32 else "dot_bf16"
            factors = (right, left) if mma.is_left_signed else (left, right)
            product = Intrinsic(name, factors, sums.buffer.dtype)
        return Store(sums.buffer, sums.indices, Arith(ArithOp.ADD, (sums, product)))


def row_of_sum(thread: Scalar, element: int) -> Scalar:
    """Return the row of a thread's sum in the tile of sums of a product of a warp."""
    lane = Arith(ArithOp.FLOOR_MOD, (thread, _number(WARP)))
    return _sum(Arith(ArithOp.FLOOR_DIV, (lane, _number(_QUAD))), _number(element // 2 * 8))


def column_of_sum(thread: Scalar, element: int) -> Scalar:
    """Return the column of a thread's sum in the tile of sums of a product of a warp."""
    pair = Arith(ArithOp.FLOOR_MOD, (thread, _number(_QUAD)))
    return _sum(Arith(ArithOp.MUL, (pair, _number(2))), _number(element % 2))


def _copied_element(copy: AsyncCopy, number: int) -> Statement:
    """Return the store of one element of an asynchronous copy."""
    target, source = copy.target, copy.source
    value = Load(source.buffer, _shifted(source.indices, number))
    store = Store(target.buffer, _shifted(target.indices, number), value)
    if copy.valid is None:
        return store
    zero = Store(store.buffer, store.indices, Literal(0, target.buffer.dtype))
    return IfThenElse(Arith(ArithOp.LT, (_number(number), copy.valid)), store, zero)


def _shifted(indices: Indices, count: int) -> Indices:
    """Return the indices of the element that follows so many elements later in the row."""
    return (*indices[:-1], _sum(indices[-1], _number(count)))


def _moved(first: Load, row: Scalar, column: Scalar) -> Load:
    """Return the element in a row and a column of the tile that begins with an element."""
    *outer, first_row, first_column = first.indices
    return Load(first.buffer, (*outer, _sum(first_row, row), _sum(first_column, column)))


def _as_float32(element: Load) -> Scalar:
    return element if element.buffer.dtype is DType.FLOAT32 else Cast(element, DType.FLOAT32)


def _sum(left: Scalar, right: Scalar) -> Scalar:
    return left if right == _number(0) else Arith(ArithOp.ADD, (left, right))


def _number(value: int) -> Literal:
    return Literal(value, DType.INT64)
