"""Several steps of a sum in one iteration, where a tile has few rows.

    for k in 512                       for k.outer in 128
      tile[0, j] += x[k] * y[k, j]       for k.inner in 4, unrolled
                                           tile[0, j] += x[k.outer * 4 + k.inner] * y[...]

A single row reads a packed matrix with 2 or 3 vectors to a step, since that is the width of the tile of many
rows. An iteration that does no more keeps the processor from running far ahead of the data that it waits for.
The layout of the matrix stays that of all tiles.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from intarsia.ir import DType, PrimFunc
from intarsia.ir.prim_func import (
    Allocate,
    Arith,
    ArithOp,
    Block,
    For,
    ForKind,
    IfThenElse,
    Literal,
    LoopVar,
    Statement,
    Store,
)
from intarsia.native.tir.register_tile import EXPANDED
from intarsia.native.tir.rewriting import Replacement, block_like, flat, with_body, with_branches
from intarsia.support.free_names import NameSupply

_STEPS: Final = (4, 2)
_MOST_SUMS: Final = 32
"""Maximum number of vectors of sums in an iteration of several steps: it has as many multiplications."""


def with_steps(function: PrimFunc, lanes: int) -> PrimFunc:
    """Return a loop function whose innermost loops have several steps in each iteration, if they are short.

    Args:
        function: Loop function of a product.
        lanes: Number of elements of a vector.
    """
    return replace(function, body=_Steps(lanes).statement(function.body))


class _Steps:
    def __init__(self, lanes: int) -> None:
        self._lanes = lanes

    def statement(self, statement: Statement) -> Statement:
        match statement:
            case Block():
                return block_like(statement, [self.statement(inner) for inner in flat(statement)])
            case IfThenElse(otherwise=otherwise):
                rest = None if otherwise is None else self.statement(otherwise)
                return with_branches(statement, self.statement(statement.then), rest)
            case Allocate():
                return with_body(statement, self.statement(statement.body))
            case For():
                return self._loop(statement)
            case _:
                return statement

    def _loop(self, loop: For) -> Statement:
        sums = self._sums(loop.body)
        if loop.kind is not ForKind.SERIAL or loop.count is not None or sums is None:
            return with_body(loop, self.statement(loop.body))
        steps = next((n for n in _STEPS if sums * n <= _MOST_SUMS and not loop.extent % n), 1)
        if steps == 1:
            return loop
        names = NameSupply([loop.var.name])
        outer, inner = (LoopVar(names.fresh(f"{loop.var.name}.{part}")) for part in ("outer", "inner"))
        index = Arith(ArithOp.ADD, (Arith(ArithOp.MUL, (outer, Literal(steps, DType.INT64))), inner))
        body = Replacement({loop.var: index}).statement(loop.body)
        return For(outer, loop.extent // steps, For(inner, steps, body, ForKind.UNROLLED))

    def _sums(self, body: Statement) -> int | None:
        """Return the number of vectors that a body sums up; None if there is more in it, such as a loop."""
        match body:
            case Store():
                return 1
            case For(kind=kind) if kind in EXPANDED:
                inside = self._sums(body.body)
                width = self._lanes if kind is ForKind.VECTORIZED else 1
                return None if inside is None else inside * -(-body.extent // width)
            case _:
                return None
