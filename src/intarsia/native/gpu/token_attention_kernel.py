"""The kernel of attention among the tokens of texts, whose numbers are arguments of the kernel at run time.

A block computes one row of the result, that of a token and a head. Its threads share the keys, and then the
columns of the values; scores of the row are in shared memory:

    for block b in 12582912 count texts[] * length[] * 12
      for thread t in 64
        scores[key] = query * key + bias                        for every 64th key; largest[t] = ...
        barrier
        scores[key] = exp(scores[key] - largest of all)         for every 64th key; totals[t] = ...
        barrier
        y[b, column] = sum of scores[key] * v[key, column] / total

So barriers are reached by all threads whatever the numbers are, and only tokens that are there are read.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from intarsia.ir import Attrs, DType
from intarsia.ir.prim_func import (
    Allocate,
    Barrier,
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
from intarsia.native.gpu.text_kernels import CountedKernel
from intarsia.native.machine.isa import Isa
from intarsia.native.sizes import TokenAttention
from intarsia.native.sizes.attention_writer import AttentionWriter
from intarsia.native.sizes.text_loops import FIRST
from intarsia.native.te import Expression, exp, maximum, select
from intarsia.native.te.functions import const
from intarsia.native.te.operators.loop_nest import load, store, when
from intarsia.native.tir.rewriting import block

_THREADS: Final = 64
"""Number of threads of a row: two warps, so that several rows share a multiprocessor."""


def token_attention_kernel(form: TokenAttention, model: str) -> CountedKernel:
    """Return the kernel; its parameters are those of `native.sizes.token_attention.attention_function`.

    Args:
        form: Sizes and names.
        model: LLVM's name of the GPU's model, such as "sm_80".
    """
    return _Writer(form, Isa("nvptx64", model, ())).kernel()


@dataclass(eq=False)
class _Writer(AttentionWriter):
    """Writer of the statements of one kernel."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.thread = LoopVar(self.names.fresh("thread"))
        self.row_scores = self._shared("row", MOST_TOKENS)
        self.largest, self.totals = self._shared("largest", _THREADS), self._shared("totals", _THREADS)
        self.number = Buffer(self.names.fresh("sum"), (1,), DType.FLOAT32, MemoryScope.REGISTER)
        self.result_value = Buffer(self.names.fresh("value"), (1,), DType.FLOAT32, MemoryScope.REGISTER)

    def kernel(self) -> CountedKernel:
        """Return the kernel, with its parameters."""
        heads, counter = self.form.heads, LoopVar(self.names.fresh("block"))
        token = Expression(counter) // heads
        text = token // self.token_count
        head = self.begin(text * heads + Expression(counter) % heads)
        body: Statement = block([*self._weights(head, token - self.first), *self._sums(token, head)])
        for buffer in (self.number, self.result_value):
            body = Allocate(buffer, body)
        nest: Statement = For(self.thread, _THREADS, body, ForKind.THREAD)
        for buffer in (self.row_scores, self.largest, self.totals):
            nest = Allocate(buffer, nest)
        params = (*self.params, self.result, self.texts, self.length)
        if self.form.is_joined:
            params = (*params, self.all_keys)
        count = load(self.texts, ()) * self.token_count * heads
        most = MOST_ITEMS * heads
        grid = For(counter, most, nest, ForKind.BLOCK, count.scalar)
        function = PrimFunc(params, grid, Attrs({"contract": True}))
        return CountedKernel(function, NUMBER_OF[ItemKind.TOKENS])

    def _weights(self, head: Expression, query: Expression) -> list[Statement]:
        """Return the statements that write the weights of a row, and their total, which divides none yet."""
        mine = Expression(self.thread)

        def score(key: Expression) -> Statement:
            row = self.first_row + key, self.shared

            def add(e: Expression) -> Statement:
                product = load(self.queries, (self.first + query, head, e)) * load(self.keys, (*row, e))
                return store(self.number, (FIRST,), load(self.number, (FIRST,)) + product)

            scaled = load(self.number, (FIRST,)) * const(self.form.scale)
            highest = maximum(load(self.largest, (mine,)), load(self.row_scores, (key,)))
            return block(
                [
                    store(self.number, (FIRST,), const(0.0)),
                    self.loop(self.form.size, add),
                    self._biased(scaled, head, query, key),
                    store(self.largest, (mine,), highest),
                ]
            )

        def power(key: Expression) -> Statement:
            value = exp(load(self.row_scores, (key,)) - load(self.number, (FIRST,)))
            following = load(self.totals, (mine,)) + load(self.row_scores, (key,))
            return block(
                [store(self.row_scores, (key,), value), store(self.totals, (mine,), following)],
            )

        return [
            store(self.largest, (mine,), const(-math.inf)),
            self._each_key(score),
            Barrier(),
            *self._of_all(self.largest, const(-math.inf), maximum),
            *([self._finite_largest()] if self.form.clears else []),
            store(self.totals, (mine,), const(0.0)),
            self._each_key(power),
            Barrier(),
            *self._of_all(self.totals, const(0.0), lambda left, right: left + right),
        ]

    def _biased(self, scaled: Expression, head: Expression, query: Expression, key: Expression) -> Statement:
        """Return the statement that writes the score of a key."""
        position = self.position + query
        if self.table is not None and self.form.anchor == "query":
            column = key - position + self.table.shape[1] // 2
            scaled = scaled + load(self.table, (self.table_row(head), column))

        def written(value: Expression) -> Statement:
            return store(self.row_scores, (key,), value)

        first = written(scaled + self.bias(0, key, head))
        if len(self.rows) == 1:
            return first
        later = self.bias(1, key, head)
        return when(key <= position, first, written(later if self.form.replaces else scaled + later))

    def _sums(self, token: Expression, head: Expression) -> list[Statement]:
        """Return the statements that write the columns of a row, of which each thread has some."""
        total, value = load(self.number, (FIRST,)), load(self.result_value, (FIRST,))

        def column(at: Expression) -> Statement:
            def add(key: Expression) -> Statement:
                weight = load(self.row_scores, (key,))
                product = weight * load(self.values, (self.first_row + key, self.shared, at))
                return store(self.result_value, (FIRST,), value + product)

            return block(
                [
                    store(self.result_value, (FIRST,), const(0.0)),
                    self.loop(MOST_TOKENS, add, count=self.key_count),
                    store(self.result, (token, head, at), value * self.reciprocal(total)),
                ]
            )

        def turn(number: Expression) -> Statement:
            at = number * _THREADS + Expression(self.thread)
            return when(at < self.form.value_size, column(at))

        return [self.loop(-(-self.form.value_size // _THREADS), turn)]

    def _of_all(
        self, parts: Buffer, start: Expression, combine: Callable[[Expression, Expression], Expression]
    ) -> list[Statement]:
        """Return the statements with which each thread combines the parts of all threads."""

        def add(thread: Expression) -> Statement:
            following = combine(load(self.number, (FIRST,)), load(parts, (thread,)))
            return store(self.number, (FIRST,), following)

        return [store(self.number, (FIRST,), start), self.loop(_THREADS, add)]

    def _finite_largest(self) -> Statement:
        """Return the statement that puts 0 in place of a largest score of -inf, where no key is visible."""
        largest = load(self.number, (FIRST,))
        return store(self.number, (FIRST,), select(largest > -math.inf, largest, 0.0))

    def _each_key(self, body: Callable[[Expression], Statement]) -> Statement:
        """Return the loop over the keys of a thread."""

        def turn(number: Expression) -> Statement:
            key = number * _THREADS + Expression(self.thread)
            return when(key < self.key_count, body(key))

        count = (self.key_count + (_THREADS - 1)) // _THREADS
        return self.loop(-(-MOST_TOKENS // _THREADS), turn, count=count)

    def _shared(self, name: str, size: int) -> Buffer:
        return Buffer(self.names.fresh(name), (size,), DType.FLOAT32, MemoryScope.SHARED)
