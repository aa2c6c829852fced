"""The loop function of attention among the tokens of texts, whose numbers are arguments of the kernel.

All tensors have their tokens one behind another, those of a text behind those of the one before, so that a
token is a row of each tensor, and its number is in no stride. Keys and values that are joined with those of
the past lie head by head: there a key is a row, and so its number is in no stride either:

    for parallel text and head in 12582912 count texts[] * 12, or one by one if there is little work
      keys of the head in panels, as wide as a register tile; the last panel is filled with zeros
      biases of the scores by key; -inf where there is no key
      for tile in 1024 count (length[] + 7) floordiv 8
        for each number of rows that may be left for the last tile
          scores of the rows with all keys, in scratch memory, a tile of rows by a panel at a time
          softmax of each row, without the division
          values by these weights, divided by the sum of the weights

Few tokens, such as the one of a decoder's step, are multiplied by the keys where they lie.

Only the tokens that are there are read. Scores and panels have scratch memory for the most tokens, of which
fewer tokens touch a part.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from intarsia.ir import Attrs, DType
from intarsia.ir.prim_func import Allocate, PrimFunc, Statement
from intarsia.native.execution.most_items import MOST_ITEMS, MOST_TOKENS
from intarsia.native.machine.isa import Isa
from intarsia.native.sizes.attention_form import TokenAttention
from intarsia.native.sizes.attention_writer import PANEL_VECTORS, AttentionWriter
from intarsia.native.sizes.shared_loops import SharedLoops
from intarsia.native.sizes.text_loops import FIRST, with_numbers
from intarsia.native.te import Expression
from intarsia.native.te.expression import literal
from intarsia.native.te.functions import const
from intarsia.native.te.operators.loop_nest import load, store, when
from intarsia.native.tir.rewriting import block

_FEW_TOKENS: Final = 12
"""Number of tokens of a text up to which keys are not copied into panels: 8 heads of 64 elements take 1.0 us
in place of 3.5 for one token, 8.1 in place of 14.3 for 9, and as long for 16 (one thread of Zen 4)."""


def attention_function(form: TokenAttention, isa: Isa, threads: int) -> PrimFunc:
    """Return the loop function; `default_tir` has to run on it.

    Its parameters are queries (tokens, heads, size), keys, values (tokens, heads, value size), the biases, a
    table (heads or 1, columns), the first positions of texts as int64, the result (tokens, heads, value
    size), the number of texts, that of the tokens of each, and, where keys are joined with those of the past
    or are those of other texts, that of keys of each. Other elements are float32.

    Args:
        form: Sizes and names.
        isa: Instruction set of the code.
        threads: Number of threads.
    """
    return _Writer(form, isa).function(SharedLoops.of(isa, threads))


@dataclass(eq=False)
class _Writer(AttentionWriter):
    """Writer of the statements of one loop function."""

    def function(self, shared: SharedLoops) -> PrimFunc:
        """Return the loop function."""
        pairs, most = load(self.texts, ()) * self.form.heads, MOST_ITEMS * self.form.heads
        work = pairs * self.token_count * self.key_count * (self.form.size + self.form.value_size)
        names = self.names.fresh("group"), self.names.fresh("head")
        params = (*self.params, self.result, self.texts, self.length)
        if self.form.counts_keys:
            params = (*params, self.all_keys)
        nest = shared.loop(names, most, pairs, work, self._head)
        return PrimFunc(params, nest, Attrs({"contract": True}))

    def _head(self, number: Expression) -> Statement:
        """Return the statement for a head of a text."""
        head = self.begin(number)
        many = block([self._panels(), self._tiles(head)])
        steps = when(self.token_count <= _FEW_TOKENS, self._few(head), many)
        body = block([self.copied_biases(head), steps])
        body = with_numbers([head, self.first, self.first_key, self.first_row, self.shared], body)
        for buffer in (self.panels, *self.rows, self.scores):
            body = Allocate(buffer, body)
        return body

    def _panels(self) -> Statement:
        """Copy the keys of a head, transposed within each panel, with zeros behind the last one."""

        def panel(at: Expression) -> Statement:
            def copy(key: Expression) -> Statement:
                row = self.first_row + at * self.width + key, self.shared
                return self.loop(
                    self.form.size, lambda e: store(self.panels, (at, e, key), load(self.keys, (*row, e)))
                )

            def clear(e: Expression) -> Statement:
                return self.lanes(self.width, lambda lane: store(self.panels, (at, e, lane), const(0.0)))

            # Vectors of zeros first: one by one they take ten times as long as all else for a few keys.
            rest = [
                self.loop(self.form.size, clear),
                self.loop(self.width, copy, count=self.key_count - at * self.width),
            ]
            is_whole = (at + 1) * self.width <= self.key_count
            return when(is_whole, self.loop(self.width, copy), block(rest))

        return self.each_panel(panel)

    def _tiles(self, head: Expression) -> Statement:
        def tile(at: Expression) -> Statement:
            begin = at * self.height
            bodies = [self._tile(head, begin, rows) for rows in range(1, self.height + 1)]
            rest = bodies[0]
            for rows, body in enumerate(bodies[1:], 2):
                rest = when(begin + rows <= self.token_count, body, rest)
            return rest

        count = (self.token_count + (self.height - 1)) // self.height
        return self.loop(-(-MOST_TOKENS // self.height), tile, count=count)

    def _few(self, head: Expression) -> Statement:
        """Return the statement for few queries of a text, each multiplied by the keys where they lie."""
        shares, first = self.buffer("shares", 1), FIRST
        lanes = self.width // PANEL_VECTORS
        products, vectors = self.buffer("products", lanes), self.form.size // lanes
        rest = self.form.size % lanes

        def add(begin: Expression, count: int, query: Expression, key: Expression) -> Statement:
            row = self.first_row + key, self.shared
            return self.lanes(
                count,
                lambda lane: store(
                    products,
                    (lane,),
                    load(products, (lane,))
                    + load(self.queries, (self.first + query, head, begin + lane))
                    * load(self.keys, (*row, begin + lane)),
                ),
            )

        def score(query: Expression, key: Expression) -> Statement:
            parts = [
                add(literal(vector * lanes, DType.INT64), lanes, query, key) for vector in range(vectors)
            ]
            parts += [add(literal(vectors * lanes, DType.INT64), rest, query, key)] if rest else []
            product = load(products, (FIRST,)) * const(self.form.scale)
            return block(
                [
                    self.lanes(lanes, lambda lane: store(products, (lane,), const(0.0))),
                    *parts,
                    *self.halved(products, lanes, lambda left, right: left + right),
                    store(self.scores, (first, key), self.scored(product, head, query, key)),
                ]
            )

        def hide(lane: Expression) -> Statement:
            key = self.key_count // self.width * self.width + lane
            return when(self.key_count <= key, store(self.scores, (first, key), const(-math.inf)))

        def rows(query: Expression) -> Statement:
            # The rest of the last panel; where that is whole, the panel behind it, which is not read.
            hidden = when(self.key_count % self.width > 0, self.loop(self.width, hide))
            steps: list[Statement] = [
                self.loop(MOST_TOKENS, lambda key: score(query, key), count=self.key_count),
                hidden,
                self.softmax(first, shares),
                self.loop(
                    self.form.value_size // self.across,
                    lambda at: self.weighted_sums(head, query, at, 1, shares),
                ),
            ]
            return block(steps)

        queries = self.loop(_FEW_TOKENS, rows, count=self.token_count)
        return Allocate(shares, Allocate(products, queries))

    def _tile(self, head: Expression, begin: Expression, rows: int) -> Statement:
        """Return the statement for some queries, with all keys."""
        shares = self.buffer("shares", rows)
        body = block(
            [
                self.each_panel(lambda at: self._scores(head, begin, at, rows)),
                self.loop(rows, lambda row: self.softmax(row, shares)),
                self.loop(
                    self.form.value_size // self.across,
                    lambda at: self.weighted_sums(head, begin, at, rows, shares),
                ),
            ]
        )
        return Allocate(shares, body)

    def _scores(self, head: Expression, begin: Expression, at: Expression, rows: int) -> Statement:
        tile = self.buffer("tile", rows, self.width)

        def product(e: Expression) -> Statement:
            return self.unrolled(
                rows,
                self.width,
                lambda row, lane: store(
                    tile,
                    (row, lane),
                    load(tile, (row, lane))
                    + load(self.queries, (self.first + begin + row, head, e))
                    * load(self.panels, (at, e, lane)),
                ),
            )

        def finish(row: Expression, lane: Expression) -> Statement:
            key = at * self.width + lane
            product = load(tile, (row, lane)) * const(self.form.scale)
            return store(self.scores, (row, key), self.scored(product, head, begin + row, key))

        clear = self.unrolled(rows, self.width, lambda row, lane: store(tile, (row, lane), const(0.0)))
        steps = [clear, self.loop(self.form.size, product), self.unrolled(rows, self.width, finish)]
        return Allocate(tile, block(steps))
