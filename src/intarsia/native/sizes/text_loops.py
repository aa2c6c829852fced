"""Loop functions between texts and their tokens, whose numbers are arguments of the kernel at run time.

pool_function gives each text one value of its tokens, such as their mean or the first one:

    for text in 1048576 count texts[]
      for each block of columns
        total = 0
        for token in 4096 count length[]
          total += x[text * length[] + token, columns]
        y[text, columns] = total / length[]

Other functions copy what texts or positions have to each of their tokens, give each token its neighbours,
write keys of the past and of new tokens behind each other, head by head, or count positions in masks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod
from types import MappingProxyType
from typing import Final

from intarsia.ir import DType
from intarsia.ir.prim_func import Allocate, Buffer, For, ForKind, LoopVar, PrimFunc, Statement
from intarsia.native.dag import ComputeDAG
from intarsia.native.execution.item_kind import ItemKind
from intarsia.native.execution.most_items import MOST_ITEMS, MOST_TOKENS
from intarsia.native.machine.isa import Isa
from intarsia.native.sizes.pooled import combined, identity
from intarsia.native.te import Expression, compute, maximum, minimum, placeholder
from intarsia.native.te.expression import literal
from intarsia.native.te.functions import const
from intarsia.native.te.op_attrs import APPEND_INPUTS, POOL_MODE, POSITIONS_MODE, SPREAD_FROM, WINDOW
from intarsia.native.te.operators.loop_nest import load, store, when
from intarsia.native.tir.rewriting import block
from intarsia.support.free_names import NameSupply

TEXTS: Final = "texts"
"""Name of the scalar parameter with the number of texts."""
LENGTH: Final = "length"
"""Name of the scalar parameter with the number of tokens of each text."""
PAST: Final = "past"
"""Name of the scalar parameter with the number of past tokens of each text."""
KEYS: Final = "keys"
"""Name of the scalar parameter with the number of keys of each text: past tokens and new ones."""
POSITIONS: Final = MappingProxyType(
    {"sum": "running sum", "tail": "tail", "positions": "positions", "start": "start"}
)
"""Modes of positions by their names in intarsia::token_positions; pools have a "sum" as well."""
NEIGHBOURS: Final = "neighbours"
"""Mode of what gives each token its neighbours."""
FIRST: Final = literal(0, DType.INT64)
_BEHIND: Final = " behind "
_BLOCK_VECTORS: Final = 4
"""Number of vectors of a block of columns: their sums do not wait for each other."""


@dataclass(frozen=True, slots=True)
class TextLoops:
    """What a kernel does between texts and their tokens.

    Attributes:
        reads: Names of the parameters that are read, by their purpose.
        writes: Name of the parameter that is written.
        columns: Number of elements of an item, or of a head of one.
        dtype: Type of the elements.
        mode: Mode of the pool that makes one value of a text (op/token_pool_op), or of positions
            (op/token_positions_op), or `NEIGHBOURS`; "" where items are spread.
        source: Kind of the items that are spread; PAST where new ones are appended to the past.
        heads: Number of heads of what is appended, or of neighbours.
        is_behind_past: Whether positions that are spread are counted from the end of the past.
        has_starts: Whether the last parameter that is read has the first position of each text's new tokens.
        params: Names of the kernel's first parameters, in order; `reads` by default.
        first: Position of the first neighbour, counted from the token.
        step: Distance from one neighbour to the next.
    """

    reads: tuple[str, ...]
    writes: str
    columns: int
    dtype: DType
    mode: str = ""
    source: ItemKind = ItemKind.TEXTS
    heads: int = 1
    is_behind_past: bool = False
    has_starts: bool = False
    params: tuple[str, ...] = ()
    first: int = 0
    step: int = 1

    @property
    def reads_past(self) -> bool:
        """Whether the last parameter is the number of past tokens."""
        return self.source is ItemKind.PAST or self.is_behind_past

    @property
    def reads_keys(self) -> bool:
        """Whether the last parameter is the number of keys."""
        return self.mode == "tail"


def text_loops_of(dag: ComputeDAG) -> TextLoops | None:
    """Return what a DAG for one item does between texts and tokens; None if it is another computation."""
    result, attrs = dag.outputs[0], dag.outputs[0].op.attrs
    mode, source, joined = attrs.get(POOL_MODE, ""), attrs.get(SPREAD_FROM, ""), attrs.get(APPEND_INPUTS, ())
    mode = POSITIONS.get(str(attrs.get(POSITIONS_MODE, "")), mode)
    window = attrs.get(WINDOW, ())
    if len(dag.outputs) > 1 or not (mode or source or joined or window):
        return None
    if isinstance(joined, tuple) and joined:
        names, (_, heads, _, size) = tuple(map(str, joined)), result.shape
        form = TextLoops(names, result.buffer.name, size, result.dtype, "", ItemKind.PAST, heads)
        params = tuple(tensor.op.name for tensor in dag.placeholders)
        return replace(form, has_starts=len(names) > 2, params=params)
    (item,) = dag.placeholders
    if isinstance(window, tuple) and window:
        first, heads, step = (at for at in window if isinstance(at, int))
        form = TextLoops((item.op.name,), result.buffer.name, prod(item.shape), result.dtype, NEIGHBOURS)
        return replace(form, heads=heads, first=first, step=step)
    kind, _, behind = str(source).partition(_BEHIND)
    return TextLoops(
        (item.op.name,),
        result.buffer.name,
        prod(result.shape),
        result.dtype,
        str(mode),
        ItemKind(kind) if kind else ItemKind.TEXTS,
        is_behind_past=bool(behind),
    )


def spread_dag(columns: int, dtype: DType, source: ItemKind, *, is_behind_past: bool = False) -> ComputeDAG:
    """Return the computation of a kernel that copies items of texts or positions to tokens.

    Args:
        columns: Number of elements of an item.
        dtype: Type of the elements.
        source: Kind of the items.
        is_behind_past: Whether the first token is at the position behind the past.
    """
    item = placeholder((columns,), dtype, "item")
    text = f"{source}{_BEHIND}past" if is_behind_past else source.value
    copy = compute((columns,), lambda i: item[i], "spread", attrs={SPREAD_FROM: text})
    return ComputeDAG((item, copy))


def text_function(form: TextLoops, isa: Isa, *, is_parallel: bool) -> PrimFunc:
    """Return the loop function; `default_tir` has to run on it.

    Its parameters are what it reads and what it writes, an item of columns behind another, the number of
    texts, the number of tokens of each, and that of past tokens where it needs it.

    Args:
        form: Names, sizes and purpose.
        isa: Instruction set of the code.
        is_parallel: Whether threads share its work.
    """
    writer = _Writer(form, isa, is_parallel)
    if form.mode in POSITIONS.values():
        body = writer.count()
    elif form.mode == NEIGHBOURS:
        body = writer.neighbours()
    elif form.mode:
        body = writer.pool()
    else:
        body = writer.append() if form.source is ItemKind.PAST else writer.spread()
    sources = dict(zip(form.reads, writer.sources, strict=True))
    read = [sources[name] for name in form.params or form.reads]
    params = (*read, writer.result, writer.texts, writer.length)
    last = [writer.past] if form.reads_past else [writer.keys] if form.reads_keys else []
    return PrimFunc((*params, *last), body)


def with_numbers(numbers: Sequence[Expression], body: Statement) -> Statement:
    """Return a statement in whose loops some numbers, none of them negative, are not computed again.

    They are compared in front of it, as code reuses numbers that were computed outside of a loop.
    """
    total, *others = numbers
    for number in others:
        total = total + number
    return when(total >= 0, body)


@dataclass(eq=False)
class _Writer:
    """Writer of the statements of one loop function."""

    form: TextLoops
    isa: Isa
    is_parallel: bool

    def __post_init__(self) -> None:
        form = self.form
        self.names = NameSupply((*form.reads, form.writes))
        shape = MOST_ITEMS * form.heads, form.columns
        *self.sources, self.result = (Buffer(name, shape, form.dtype) for name in (*form.reads, form.writes))
        if form.has_starts:
            self.sources[-1] = Buffer(form.reads[-1], (MOST_ITEMS,), DType.INT64)
        self.texts, self.length, self.past, self.keys = (
            Buffer(self.names.fresh(name), (), DType.INT64) for name in (TEXTS, LENGTH, PAST, KEYS)
        )
        self.width = _BLOCK_VECTORS * max(1, self.isa.vector_bytes // form.dtype.numpy.itemsize)

    def pool(self) -> Statement:
        """Return the loop over texts and blocks of columns."""
        columns = self.form.columns
        blocks = -(-columns // self.width)
        count = load(self.texts, ()) * blocks

        def each(number: Expression) -> Statement:
            text, begin = number // blocks, number % blocks * self.width
            rest = columns % self.width
            parts = self._pooled(text, begin, rest or self.width)
            if rest and blocks > 1:
                parts = when(begin + self.width <= columns, self._pooled(text, begin, self.width), parts)
            return with_numbers([begin, text * load(self.length, ())], parts)

        return self._loop(MOST_ITEMS * blocks, each, count, self._outer)

    def spread(self) -> Statement:
        """Return the loops over texts and their tokens."""
        is_of_text = self.form.source is ItemKind.TEXTS

        def token(text: Expression, position: Expression) -> Statement:
            begin = load(self.past, ()) + position if self.form.is_behind_past else position
            row = text * load(self.length, ()) + position
            return self._copied(self.sources[0], text if is_of_text else begin, row)

        def texts(text: Expression) -> Statement:
            return self._loop(MOST_TOKENS, lambda at: token(text, at), load(self.length, ()))

        return self._loop(MOST_ITEMS, texts, load(self.texts, ()), self._outer)

    def append(self) -> Statement:
        """Return the loop over texts and heads: rows of the past, then those of new tokens."""
        heads, past, length = self.form.heads, load(self.past, ()), load(self.length, ())
        before, new, *starts = self.sources

        def head(number: Expression) -> Statement:
            first = number * (past + length)
            # Masks decide where a text begins: what they hold must not lead out of the result.
            begin = minimum(maximum(load(starts[0], (number // heads,)), 0), past) if starts else past

            def old(at: Expression) -> Statement:
                return self._copied(before, number * past + at, first + at)

            def added(at: Expression) -> Statement:
                row = (number // heads * length + at) * heads + number % heads
                return self._copied(new, row, first + begin + at)

            def clear(at: Expression) -> Statement:
                return self._filled(first + past + at)

            steps = [self._loop(MOST_TOKENS, old, past)]
            steps += [self._loop(MOST_TOKENS, clear, length)] if starts else []
            return block([*steps, self._loop(MOST_TOKENS, added, length)])

        return self._loop(MOST_ITEMS * heads, head, load(self.texts, ()) * heads, self._outer)

    def neighbours(self) -> Statement:
        """Return the loop over all tokens: rows of neighbours, or zeros beyond the text."""
        length, count = load(self.length, ()), self.form.heads

        def token(row: Expression) -> Statement:
            position = row % length

            def neighbour(at: Expression) -> Statement:
                moved = at * self.form.step + self.form.first
                near = position + moved
                copied = self._copied(self.sources[0], row + moved, row * count + at)
                inside = when(near < length, copied, self._filled(row * count + at))
                return when(near >= 0, inside, self._filled(row * count + at))

            return self._loop(count, neighbour)

        return self._loop(MOST_ITEMS, token, load(self.texts, ()) * length, self._outer)

    def count(self) -> Statement:
        """Return the loop over texts that counts positions of their tokens."""
        length, x = load(self.length, ()), self.sources[0]

        def put(row: Expression, value: Expression) -> Statement:
            return store(self.result, (row, FIRST), value)

        def text(number: Expression) -> Statement:
            first, value = number * length, load(x, (number, FIRST))
            match self.form.mode:
                case "start":
                    return put(number, maximum(value - length.astype(self.form.dtype), 0))
                case "positions":
                    return self._loop(
                        MOST_TOKENS, lambda at: put(first + at, value + at.astype(self.form.dtype)), length
                    )
                case "tail":
                    keys = load(self.keys, ())
                    behind = (number + 1) * keys - length
                    return self._loop(
                        MOST_TOKENS, lambda at: put(first + at, load(x, (behind + at, FIRST))), length
                    )
                case _:
                    return self._running_sum(first)

        return self._loop(MOST_ITEMS, text, load(self.texts, ()), self._outer)

    def _running_sum(self, first: Expression) -> Statement:
        """Return the statement that adds up the numbers of a text, which begin at a row."""
        total = Buffer(self.names.fresh("total"), (1,), self.form.dtype)

        def add(at: Expression) -> Statement:
            value = load(total, (FIRST,)) + load(self.sources[0], (first + at, FIRST))
            steps = [
                store(total, (FIRST,), value),
                store(self.result, (first + at, FIRST), load(total, (FIRST,))),
            ]
            return block(steps)

        clear = store(total, (FIRST,), const(0, self.form.dtype))
        return Allocate(total, block([clear, self._loop(MOST_TOKENS, add, load(self.length, ()))]))

    @property
    def _outer(self) -> ForKind:
        return ForKind.PARALLEL if self.is_parallel else ForKind.SERIAL

    def _pooled(self, text: Expression, begin: Expression, width: int) -> Statement:
        """Return the statement for some columns of a text."""
        length, mode = load(self.length, ()), self.form.mode
        first = text * length
        if mode in ("first", "last"):
            row = first if mode == "first" else first + length - 1
            return self._lanes(
                width,
                lambda at: store(self.result, (text, begin + at), load(self.sources[0], (row, begin + at))),
            )
        total = Buffer(self.names.fresh("total"), (width,), self.form.dtype)

        def add(token: Expression) -> Statement:
            return self._lanes(
                width,
                lambda at: store(
                    total,
                    (at,),
                    combined(mode, load(total, (at,)), load(self.sources[0], (first + token, begin + at))),
                ),
            )

        def finish(at: Expression) -> Statement:
            value = load(total, (at,))
            value = value / length.astype(self.form.dtype) if mode == "mean" else value
            return store(self.result, (text, begin + at), value)

        start = identity(mode, self.form.dtype)
        clear = self._lanes(width, lambda at: store(total, (at,), start))
        steps = [clear, self._loop(MOST_TOKENS, add, length), self._lanes(width, finish)]
        return Allocate(total, block(steps))

    def _copied(self, buffer: Buffer, source: Expression, row: Expression) -> Statement:
        """Return the statement that copies a row of a buffer to one of the result."""
        return self._row(row, lambda column: load(buffer, (source, column)))

    def _filled(self, row: Expression) -> Statement:
        """Return the statement that writes zeros to a row of the result."""
        zero = const(0.0 if self.form.dtype.is_float else 0, self.form.dtype)
        return self._row(row, lambda _: zero)

    def _row(self, row: Expression, value: Callable[[Expression], Expression]) -> Statement:
        """Return the statement that writes a row of the result, given the value in a column."""

        def copy(begin: Expression | int, width: int) -> Statement:
            return self._lanes(width, lambda at: store(self.result, (row, at + begin), value(at + begin)))

        whole, rest = divmod(self.form.columns, self.width)
        steps: Sequence[Statement] = [
            *([self._loop(whole, lambda number: copy(number * self.width, self.width))] if whole else []),
            *([copy(whole * self.width, rest)] if rest else []),
        ]
        return block(steps)

    def _loop(
        self,
        extent: int,
        body: Callable[[Expression], Statement],
        count: Expression | None = None,
        kind: ForKind = ForKind.SERIAL,
    ) -> For:
        var = LoopVar(self.names.fresh("i"))
        return For(var, extent, body(Expression(var)), kind, None if count is None else count.scalar)

    def _lanes(self, extent: int, body: Callable[[Expression], Statement]) -> For:
        return self._loop(extent, body, kind=ForKind.VECTORIZED)
