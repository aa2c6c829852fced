"""Kernels between texts and their tokens, whose numbers are arguments of the kernel at run time.

They compute what the loop functions of `native.sizes.text_loops` do. A block has the threads of one row of
the result, each with some of its columns: what a token gets of its text, a row of keys that are joined with
those of the past, or what the tokens of a text become.

    for block b in 1048576 count texts[] * length[]
      for thread t in 32
        for i in 1
          if t < 8
            y[b, t] = x[b floordiv length[], t]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from intarsia.ir import Attrs, DType
from intarsia.ir.prim_func import (
    Allocate,
    Buffer,
    For,
    ForKind,
    LoopVar,
    MemoryScope,
    PrimFunc,
    Statement,
)
from intarsia.native.execution.item_kind import NUMBER_OF, ItemKind
from intarsia.native.execution.most_items import MOST_ITEMS, MOST_TOKENS
from intarsia.native.sizes import TextLoops
from intarsia.native.sizes.pooled import combined, identity
from intarsia.native.sizes.text_loops import FIRST, KEYS, LENGTH, NEIGHBOURS, PAST, TEXTS
from intarsia.native.te import Expression, maximum, minimum
from intarsia.native.te.functions import const
from intarsia.native.te.operators.loop_nest import load, store, when
from intarsia.native.tir.rewriting import block
from intarsia.support.free_names import NameSupply

_WARP: Final = 32
_MOST_THREADS: Final = 256
"""Maximum number of threads of a block."""


@dataclass(frozen=True, slots=True)
class CountedKernel:
    """A kernel whose grid is computed when it is launched.

    Attributes:
        function: The loop function; its last parameters are numbers.
        counted: Position of the number of items (`NUMBER_OF`) that its grid is a multiple of.
    """

    function: PrimFunc
    counted: int


def text_kernel(form: TextLoops) -> CountedKernel:
    """Return the kernel of a form.

    Its parameters are those of `text_function`: what it reads and what it writes, an item of columns behind
    another, the number of texts, the number of tokens of each, and that of past tokens where it needs it.
    """
    return _Writer(form).kernel()


def rounded_threads(columns: int) -> int:
    """Return the number of threads that share a row: whole warps."""
    return min(_MOST_THREADS, -(-columns // _WARP) * _WARP)


@dataclass(eq=False)
class _Writer:
    """Writer of the statements of one kernel."""

    form: TextLoops

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
        self.threads, self.thread = rounded_threads(form.columns), LoopVar(self.names.fresh("thread"))

    def kernel(self) -> CountedKernel:
        """Return the kernel, with its parameters."""
        form = self.form
        sources = dict(zip(form.reads, self.sources, strict=True))
        params = (*(sources[name] for name in form.params or form.reads), self.result)
        last = [self.past] if form.reads_past else [self.keys] if form.reads_keys else []
        texts, length = load(self.texts, ()), load(self.length, ())
        number, block_loop = NUMBER_OF[ItemKind.TOKENS], LoopVar(self.names.fresh("block"))
        row, count, most = Expression(block_loop), texts * length, MOST_ITEMS
        if form.source is ItemKind.PAST:
            body = self._appended(row)
            count = texts * form.heads * (load(self.past, ()) + length)
            number, most = NUMBER_OF[ItemKind.KEYS], most * form.heads
        elif form.mode in ("positions", "tail"):
            body = self._numbered(row)
        elif form.mode == NEIGHBOURS:
            body = self._neighbours(row)
            count, most = texts * length * form.heads, most * form.heads
        elif form.mode:
            body, count, number = self._of_text(row), texts, NUMBER_OF[ItemKind.TEXTS]
        else:
            body = self._spread(row)
        thread = For(self.thread, self.threads, body, ForKind.THREAD)
        nest = For(block_loop, most, thread, ForKind.BLOCK, count.scalar)
        function = PrimFunc((*params, self.texts, self.length, *last), nest, Attrs({"contract": True}))
        return CountedKernel(function, number)

    def _columns(self, body: Callable[[Expression], Statement]) -> Statement:
        """Return the statement for each column of the thread."""
        turns = -(-self.form.columns // self.threads)

        def turn(at: Expression) -> Statement:
            column = at * self.threads + Expression(self.thread)
            return when(column < self.form.columns, body(column))

        return self._loop(turns, turn)

    def _row(self, row: Expression, source: Buffer, origin: Expression) -> Statement:
        """Return the statement that copies a row of a buffer to one of the result."""
        return self._columns(lambda at: store(self.result, (row, at), load(source, (origin, at))))

    def _spread(self, row: Expression) -> Statement:
        text, position = self._divided(row)
        if self.form.source is ItemKind.TEXTS:
            return self._row(row, self.sources[0], text)
        return self._row(
            row, self.sources[0], load(self.past, ()) + position if self.form.is_behind_past else position
        )

    def _appended(self, row: Expression) -> Statement:
        """Return the statement for a row of past keys and new ones, behind each other or at a position."""
        before, new, *starts = self.sources
        past, length = load(self.past, ()), load(self.length, ())
        keys, heads = past + length, self.form.heads
        number, at = row // keys, row % keys
        # As `text_loops`: what masks hold must not lead out of the result.
        begin = minimum(maximum(load(starts[0], (number // heads,)), 0), past) if starts else past
        origin = (number // heads * length + at - begin) * heads + number % heads
        zero = const(0.0 if self.form.dtype.is_float else 0, self.form.dtype)
        old = self._row(row, before, number * past + at)
        nothing = self._columns(lambda column: store(self.result, (row, column), zero))
        behind = when(at < past, old, nothing)
        new_or_behind = when(at < begin + length, self._row(row, new, origin), behind)
        return when(at < begin, old, new_or_behind)

    def _neighbours(self, row: Expression) -> Statement:
        """Return the statement for a neighbour of a token: zeros beyond the text."""
        form, length = self.form, load(self.length, ())
        token, at = row // form.heads, row % form.heads
        text, position = self._divided(token)
        near = position + at * form.step + form.first
        zero = const(0.0 if form.dtype.is_float else 0, form.dtype)
        nothing = self._columns(lambda column: store(self.result, (row, column), zero))
        inside = when(near < length, self._row(row, self.sources[0], text * length + near), nothing)
        return when(near >= 0, inside, nothing)

    def _numbered(self, row: Expression) -> Statement:
        """Return the statement for the position of a token."""
        text, position = self._divided(row)
        x = self.sources[0]
        if self.form.mode == "tail":
            keys = load(self.keys, ())
            value = load(x, ((text + 1) * keys - load(self.length, ()) + position, FIRST))
        else:
            value = load(x, (text, FIRST)) + position.astype(self.form.dtype)
        return self._columns(lambda column: store(self.result, (row, column), value))

    def _of_text(self, text: Expression) -> Statement:
        """Return the statement for what the tokens of a text become, in the order of the tokens."""
        form, length, x = self.form, load(self.length, ()), self.sources[0]
        first = text * length
        match form.mode:
            case "start":
                value = maximum(load(x, (text, FIRST)) - length.astype(form.dtype), 0)
                return self._columns(lambda column: store(self.result, (text, column), value))
            case "first" | "last":
                return self._row(text, x, first if form.mode == "first" else first + length - 1)
        total = Buffer(self.names.fresh("total"), (1,), form.dtype, MemoryScope.REGISTER)
        value = load(total, (FIRST,))
        is_sum = form.mode == "running sum"

        def column(at: Expression) -> Statement:
            def token(position: Expression) -> Statement:
                row = first + position
                following = combined(form.mode, value, load(x, (row, at)))
                steps = [store(total, (FIRST,), following)]
                steps += [store(self.result, (row, at), value)] if is_sum else []
                return block(steps)

            share = value / length.astype(form.dtype) if form.mode == "mean" else value
            steps: list[Statement] = [
                store(total, (FIRST,), identity(form.mode, form.dtype)),
                self._loop(MOST_TOKENS, token, length),
            ]
            steps += [] if is_sum else [store(self.result, (text, at), share)]
            return block(steps)

        return Allocate(total, self._columns(column))

    def _divided(self, row: Expression) -> tuple[Expression, Expression]:
        """Return the text and the position of a token."""
        length = load(self.length, ())
        return row // length, row % length

    def _loop(
        self, extent: int, body: Callable[[Expression], Statement], count: Expression | None = None
    ) -> For:
        var = LoopVar(self.names.fresh("i"))
        return For(var, extent, body(Expression(var)), count=None if count is None else count.scalar)
