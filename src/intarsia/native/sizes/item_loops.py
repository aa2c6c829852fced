"""Loop functions for any number of items.

A program computes each item of a batch by itself, and a value for n items is n values for one item, one
behind another. So the function for n items is a loop around that for one:

    for item in 1048576 count items[]
      y[item, i] = ...

Where rows share what they read, as in products, tiles of rows stand in the loop. Each number of rows that may
be left for the last two tiles has its own code:

    for panels
      for tile in 1048576 count (items[] * 12 + 7) floordiv 8
        if 8 <= items[] * 12 - tile * 8, and that is not 9
          rows tile * 8 to tile * 8 + 7
        else
          if 4 rows are left
            the last 4 rows
          else ...

The first tile of a panel has as many rows as it can: it waits for the packed matrix, and computes meanwhile,
while others find it in a cache. 17 rows of tiles of 14 are 14 and 3; as 9 and 8 by 768x768 they take 1.24 of
the time (Zen 4). A single last row leaves no work between its loads, so 9 rows of tiles of 8 are 7 and 2.
Where there is code for more rows than a whole tile has, as few rows are one tile.

Loops of tiles may be moved into other loops, since no item depends on what is computed for another one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from intarsia.ir import DType
from intarsia.ir.loop_walk import walk
from intarsia.ir.prim_func import (
    Arith,
    ArithOp,
    Block,
    Buffer,
    For,
    ForKind,
    IfThenElse,
    Literal,
    Load,
    LoopVar,
    PrimFunc,
    Scalar,
    Statement,
)
from intarsia.native.execution.most_items import MOST_ITEMS
from intarsia.native.tir.rewriting import Access, Indices, Replacement, block, buffer_names, flat
from intarsia.support.free_names import NameSupply

ITEMS: Final = "items"
"""Name of the last parameter: a scalar, the number of items."""
_OUTER: Final = (ForKind.SERIAL, ForKind.PARALLEL)


def repeat_items(
    function: PrimFunc, carrying: Collection[str], *, is_parallel: bool, is_moved_in: bool
) -> PrimFunc:
    """Return the loop function for any number of items.

    Args:
        function: Loop function for one item.
        carrying: Names of the parameters that have each item; others are the same for all items.
        is_parallel: Whether items are shared among threads, where the function for one has no parallel loop.
        is_moved_in: Whether the loop over items is moved into the outermost loops of the function, so that
            what these read, such as a block of filters, is read for all items one after another.
    """
    loops = _ItemLoops.of((function,), function)
    item = LoopVar(loops.variables.fresh("item"))
    kind = ForKind.PARALLEL if is_parallel and not _has_parallel(function.body) else ForKind.SERIAL

    def loop(bodies: Sequence[Statement]) -> Statement:
        return For(item, MOST_ITEMS, bodies[0], kind, loops.count)

    buffers = {
        buffer: replace(buffer, shape=(MOST_ITEMS, *buffer.shape))
        for buffer in function.params
        if buffer.name in carrying
    }
    accesses = {old: _item_of(new, item) for old, new in buffers.items()}
    body = Replacement(accesses=accesses).statement(function.body)
    nest = _nested((body,), loop) if is_moved_in else loop((body,))
    return loops.function(function, buffers, nest)


def repeat_rows(
    functions: Sequence[PrimFunc],
    carrying: Collection[str],
    rows_of_item: int,
    height: int,
    *,
    is_parallel: bool,
) -> PrimFunc:
    """Return the loop function for any number of items of some rows each.

    Args:
        functions: Loop functions for 1, 2, 3 ... rows, at least for those of a whole tile.
        carrying: Names of the parameters whose first axis is the rows.
        rows_of_item: Number of rows of an item.
        height: Number of rows of a whole tile. As few rows as the last function has, or fewer, are a
            single tile.
        is_parallel: Whether tiles are shared among threads, where the functions have no parallel loops.
    """
    whole, most = functions[height - 1], len(functions)
    loops = _ItemLoops.of(functions, whole)
    tile = LoopVar(loops.variables.fresh("tile"))
    rows = _product(loops.count, rows_of_item)
    kind = ForKind.PARALLEL if is_parallel and not _has_parallel(whole.body) else ForKind.SERIAL
    count = _int(ArithOp.FLOOR_DIV, _int(ArithOp.ADD, rows, height - 1), height)
    begin = _product(tile, height)

    left = _int(ArithOp.SUB, rows, begin)
    rest_begin = _rest_begin(begin, left)
    is_whole: Scalar = Arith(ArithOp.LE, (_literal(height), left))
    rest_size: Scalar = Arith(
        ArithOp.SELECT, (is_whole, _literal(height - 1), _int(ArithOp.SUB, rows, rest_begin))
    )
    leaves_one = Arith(ArithOp.EQ, (left, _literal(height + 1)))
    is_whole = Arith(ArithOp.AND, (is_whole, Arith(ArithOp.NOT, (leaves_one,))))
    if most > height:
        is_single = Arith(
            ArithOp.AND,
            (Arith(ArithOp.LT, (_literal(height), rows)), Arith(ArithOp.LE, (rows, _literal(most)))),
        )
        count = Arith(ArithOp.SELECT, (is_single, _literal(1), count))
        rest_size = Arith(ArithOp.SELECT, (is_single, rows, rest_size))
        is_whole = Arith(ArithOp.AND, (is_whole, Arith(ArithOp.NOT, (is_single,))))

    def loop(bodies: Sequence[Statement]) -> Statement:
        rest: Statement = bodies[0]
        for number, body in enumerate(bodies[1:], 2):
            if number != height:
                rest = IfThenElse(Arith(ArithOp.EQ, (rest_size, _literal(number))), body, rest)
        if height > 1:
            rest = IfThenElse(is_whole, bodies[height - 1], rest)
        return For(tile, MOST_ITEMS * rows_of_item, rest, kind, count)

    new = {
        buffer.name: replace(buffer, shape=(MOST_ITEMS * rows_of_item, *buffer.shape[1:]))
        for buffer in whole.params
        if buffer.name in carrying
    }
    bodies = []
    for function in functions:
        moved = {
            buffer: _rows_from(new[buffer.name], begin if function is whole else rest_begin)
            for buffer in function.params
            if buffer.name in new
        }
        names = None if function is whole else loops.names
        bodies.append(Replacement(accesses=moved, names=names).statement(function.body))
    buffers = {buffer: new[buffer.name] for buffer in whole.params if buffer.name in new}
    return loops.function(whole, buffers, _nested(bodies, loop))


def _rest_begin(begin: Scalar, left: Scalar) -> Scalar:
    """Return the first row of a tile that is not whole: a single last row has the one before it with it.

    Args:
        begin: First row of the tile if all before it are whole.
        left: Number of rows from there on.
    """
    is_alone = Arith(
        ArithOp.AND, (Arith(ArithOp.EQ, (left, _literal(1))), Arith(ArithOp.LT, (_literal(0), begin)))
    )
    return Arith(ArithOp.SELECT, (is_alone, _int(ArithOp.SUB, begin, 1), begin))


@dataclass(frozen=True, slots=True)
class _ItemLoops:
    """Names of a function for any number of items, and its parameter for that number."""

    names: NameSupply
    variables: NameSupply
    items: Buffer

    @classmethod
    def of(cls, functions: Sequence[PrimFunc], whole: PrimFunc) -> _ItemLoops:
        names = buffer_names(whole)
        loops = (visit.statement for function in functions for visit in walk(function.body))
        variables = NameSupply(loop.var.name for loop in loops if isinstance(loop, For))
        return cls(names, variables, Buffer(names.fresh(ITEMS), (), DType.INT64))

    @property
    def count(self) -> Scalar:
        return Load(self.items, ())

    def function(self, before: PrimFunc, buffers: Mapping[Buffer, Buffer], body: Statement) -> PrimFunc:
        params = tuple(buffers.get(buffer, buffer) for buffer in before.params)
        return replace(before, params=(*params, self.items), body=body)


def _nested(bodies: Sequence[Statement], loop: Callable[[Sequence[Statement]], Statement]) -> Statement:
    """Return statements with the loop over tiles inside the outer loops that all of them have.

    Args:
        bodies: Statements for different numbers of rows.
        loop: Function that makes the loop over tiles from the statements inside of it.
    """
    parts = [flat(body) for body in bodies]
    if len({len(part) for part in parts}) > 1:
        return loop(bodies)
    if len(parts[0]) > 1:
        return block(_nested(part, loop) for part in zip(*parts, strict=True))
    first = parts[0][0] if parts[0] else Block(())
    if not isinstance(first, For) or first.kind not in _OUTER:
        return loop(bodies)
    inside = []
    for (body,) in parts:
        if not isinstance(body, For) or (body.extent, body.kind) != (first.extent, first.kind):
            return loop(bodies)
        inside.append(Replacement({body.var: first.var}).statement(body.body))
    return replace(first, body=_nested(inside, loop))


def _has_parallel(body: Statement) -> bool:
    loops = (visit.statement for visit in walk(body))
    return any(isinstance(loop, For) and loop.kind is ForKind.PARALLEL for loop in loops)


def _item_of(buffer: Buffer, item: LoopVar) -> Access:
    def access(indices: Indices) -> tuple[Buffer, Indices]:
        return buffer, (item, *indices)

    return access


def _rows_from(buffer: Buffer, begin: Scalar) -> Access:
    def access(indices: Indices) -> tuple[Buffer, Indices]:
        first = indices[0]
        is_first = isinstance(first, Literal) and first.value == 0
        return buffer, (begin if is_first else Arith(ArithOp.ADD, (begin, first)), *indices[1:])

    return access


def _product(scalar: Scalar, factor: int) -> Scalar:
    return scalar if factor == 1 else _int(ArithOp.MUL, scalar, factor)


def _literal(number: int) -> Literal:
    return Literal(number, DType.INT64)


def _int(op: ArithOp, left: Scalar, right: Scalar | int) -> Scalar:
    return Arith(op, (left, _literal(right) if isinstance(right, int) else right))
