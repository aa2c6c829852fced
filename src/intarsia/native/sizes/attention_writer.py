"""Parts of the loop function of attention: its buffers, biases, softmax and weighted sums."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from intarsia.ir import DType
from intarsia.ir.prim_func import Allocate, Buffer, For, ForKind, LoopVar, Statement
from intarsia.native.execution.most_items import MOST_ITEMS, MOST_TOKENS
from intarsia.native.machine.isa import Isa
from intarsia.native.sizes.attention_form import TokenAttention
from intarsia.native.sizes.text_loops import FIRST, KEYS, LENGTH, TEXTS
from intarsia.native.te import Expression, exp, maximum, select
from intarsia.native.te.functions import const, equal
from intarsia.native.te.operators.loop_nest import load, store, when
from intarsia.native.tir.rewriting import block
from intarsia.support.free_names import NameSupply

PANEL_VECTORS: Final = 3
"""Number of vectors in a row of a register tile."""
_MANY_REGISTERS: Final = 32
"""Number of vector registers with which a tile has 8 rows by 3 vectors; with fewer it has 4."""
Combine: TypeAlias = Callable[[Expression, Expression], Expression]


@dataclass(eq=False)
class AttentionWriter:
    """Writer of statements for one text and head.

    Attributes:
        form: Sizes and names.
        isa: Instruction set of the code.
    """

    form: TokenAttention
    isa: Isa

    def __post_init__(self) -> None:
        form, most = self.form, MOST_ITEMS
        self.names = NameSupply((*form.params, form.result))
        lanes = self.isa.vector_bytes // DType.FLOAT32.numpy.itemsize
        self.width = lanes * PANEL_VECTORS
        self.height = 8 if self.isa.vector_registers >= _MANY_REGISTERS else 4
        panels = -(-MOST_TOKENS // self.width)
        self.groups = form.heads // form.shared_heads
        rows = (most * form.shared_heads, 1) if form.is_joined else (most, form.shared_heads)
        shapes: list[tuple[int, ...]] = [
            (most, form.heads, form.size),
            (*rows, form.size),
            (*rows, form.value_size),
        ]
        params: dict[str, Buffer] = {}
        shapes += [*form.biases, *([] if form.table is None else [form.table])]
        given = list(zip(form.arguments, shapes, strict=False))
        for name, shape in given:
            params.setdefault(name, Buffer(name, shape, DType.FLOAT32))
        if form.starts is not None:
            params[form.arguments[-1]] = Buffer(form.arguments[-1], (form.starts,), DType.INT64)
        self.params = [params[name] for name in form.params]
        buffers = [params[name] for name in form.arguments]
        self.starts = None if form.starts is None else buffers.pop()
        self.table = None if form.table is None else buffers.pop()
        self.queries, self.keys, self.values, *self.biases = buffers
        self.result = Buffer(form.result, (most, form.heads, form.value_size), DType.FLOAT32)
        self.texts, self.length, self.all_keys = (
            Buffer(self.names.fresh(name), (), DType.INT64) for name in (TEXTS, LENGTH, KEYS)
        )
        self.panels = self.buffer("panels", panels, form.size, self.width)
        self.rows = [self.buffer("summands", panels * self.width) for _ in form.biases or (False,)]
        self.scores = self.buffer("scores", self.height, panels * self.width)
        # As wide as a tile while registers last; a divisor, so that no remainder is left.
        vectors = math.gcd(form.value_size, lanes)
        count = form.value_size // vectors
        self.across = vectors * max(n for n in range(1, PANEL_VECTORS + 1) if count % n == 0)
        self.first = self.first_key = self.first_row = self.shared = self.position = FIRST

    def begin(self, number: Expression) -> Expression:
        """Note where the tokens of a text and a head begin, given the number of the pair; return the head."""
        heads = self.form.heads
        head, text = number % heads, number // heads
        self.first, self.first_key = text * self.token_count, text * self.key_count
        if self.form.is_joined:
            shared = text * self.form.shared_heads + head // self.groups
            self.first_row, self.shared = shared * self.key_count, FIRST
        else:
            self.first_row, self.shared = self.first_key, head // self.groups
        if self.starts is not None:
            self.position = load(self.starts, (text if self.starts.shape[0] > 1 else FIRST,))
        elif self.form.is_joined:
            self.position = self.key_count - self.token_count
        return head

    def buffer(self, name: str, *shape: int) -> Buffer:
        """Return a buffer of float32 with a name of its own."""
        return Buffer(self.names.fresh(name), shape, DType.FLOAT32)

    @property
    def token_count(self) -> Expression:
        """The number of tokens of each text."""
        return load(self.length, ())

    @property
    def key_count(self) -> Expression:
        """The number of keys of each text."""
        return load(self.all_keys if self.form.counts_keys else self.length, ())

    def loop(
        self,
        extent: int,
        body: Callable[[Expression], Statement],
        kind: ForKind = ForKind.SERIAL,
        count: Expression | None = None,
    ) -> For:
        """Return a loop whose body is made from its variable."""
        var = LoopVar(self.names.fresh("i"))
        return For(var, extent, body(Expression(var)), kind, None if count is None else count.scalar)

    def lanes(self, extent: int, body: Callable[[Expression], Statement]) -> For:
        """Return a vectorised loop."""
        return self.loop(extent, body, ForKind.VECTORIZED)

    def each_panel(self, body: Callable[[Expression], Statement]) -> For:
        """Return a loop over the panels that have keys."""
        count = (self.key_count + (self.width - 1)) // self.width
        return self.loop(self.panels.shape[0], body, count=count)

    def copied_biases(self, head: Expression) -> Statement:
        """Copy the biases of a head, with -inf for keys that are not there."""

        def panel(at: Expression) -> Statement:
            def key(lane: Expression) -> Statement:
                token = at * self.width + lane
                there, missing = [], []
                for number, row in enumerate(self.rows):
                    there.append(store(row, (token,), self.bias(number, token, head)))
                    missing.append(store(row, (token,), const(-math.inf)))
                return when(token < self.key_count, block(there), block(missing))

            return self.loop(self.width, key)

        return self.each_panel(panel)

    def bias(self, number: int, token: Expression, head: Expression) -> Expression:
        """Return what is added to the score of a key, by the number of the bias; 0 where nothing is."""
        total: Expression | None = None
        if self.biases:
            bias = self.biases[number]
            indices = [
                index if extent > 1 else FIRST
                for index, extent in zip((self.first_key + token, head), bias.shape, strict=True)
            ]
            total = load(bias, indices)
        is_replaced = number > 0 and self.form.replaces
        if self.table is not None and self.form.anchor != "query" and not is_replaced:
            width = self.table.shape[1]
            column = token if self.form.anchor == "first" else token + (width - self.key_count)
            entry = load(self.table, (self.table_row(head), column))
            total = entry if total is None else total + entry
        return const(0.0) if total is None else total

    def table_row(self, head: Expression) -> Expression:
        """Return the row of the table for a head."""
        assert self.table is not None
        return head if self.table.shape[0] > 1 else FIRST

    def scored(
        self,
        product: Expression,
        head: Expression,
        query: Expression,
        key: Expression,
        *,
        is_single: bool = False,
    ) -> Expression:
        """Return the biased score of a key, given the scaled product of it with a query of the text."""
        position = self.position + query
        if self.table is not None and self.form.anchor == "query":
            column = key - position + self.table.shape[1] // 2
            product = product + load(self.table, (self.table_row(head), column))
        value = product + load(self.rows[0], (key,))
        sees_all = is_single and self.starts is None
        if len(self.rows) == 1 or sees_all:
            return value
        later = load(self.rows[1], (key,))
        return select(key <= position, value, later if self.form.replaces else product + later)

    def softmax(self, row: Expression, shares: Buffer) -> Statement:
        """Replace the scores of a row by powers, and write the reciprocal of their sum."""
        largest, total = self.buffer("largest", self.width), self.buffer("total", self.width)
        clears = self.form.clears

        def widest(at: Expression) -> Statement:
            return self.lanes(
                self.width,
                lambda lane: store(
                    largest,
                    (lane,),
                    maximum(load(largest, (lane,)), load(self.scores, (row, at * self.width + lane))),
                ),
            )

        def power(at: Expression) -> Statement:
            def value(lane: Expression) -> Statement:
                index = row, at * self.width + lane
                difference = load(self.scores, index) - load(largest, (FIRST,))
                return store(self.scores, index, exp(difference))

            def add(lane: Expression) -> Statement:
                index = row, at * self.width + lane
                return store(total, (lane,), load(total, (lane,)) + load(self.scores, index))

            return block([self.lanes(self.width, value), self.lanes(self.width, add)])

        steps = [
            self.lanes(self.width, lambda lane: store(largest, (lane,), const(-math.inf))),
            self.each_panel(widest),
            *self._folded(largest, maximum),
            *([store(largest, (FIRST,), self._finite(load(largest, (FIRST,))))] if clears else []),
            self.lanes(self.width, lambda lane: store(total, (lane,), const(0.0))),
            self.each_panel(power),
            *self._folded(total, lambda left, right: left + right),
            store(shares, (row,), self.reciprocal(load(total, (FIRST,)))),
        ]
        return Allocate(largest, Allocate(total, block(steps)))

    def _finite(self, largest: Expression) -> Expression:
        """Return the largest score, 0 in place of -inf."""
        return select(equal(largest, -math.inf), 0.0, largest)

    def reciprocal(self, total: Expression) -> Expression:
        """Return 1 / total; where rows without a visible key are 0, 1 / 0 is 0."""
        share = const(1.0) / total
        return select(equal(total, 0.0), 0.0, share) if self.form.clears else share

    def _folded(self, buffer: Buffer, combine: Combine) -> Sequence[Statement]:
        """Return statements that combine all elements of a buffer into its first one, by halves."""
        lanes = self.width // PANEL_VECTORS

        steps = [self.combined(buffer, lanes * vector, lanes, combine) for vector in range(1, PANEL_VECTORS)]
        return [*steps, *self.halved(buffer, lanes, combine)]

    def halved(self, buffer: Buffer, lanes: int, combine: Combine) -> Sequence[Statement]:
        """Return statements that combine the elements of a vector into its first one, by halves."""
        steps = []
        while lanes > 1:
            lanes //= 2
            steps.append(self.combined(buffer, lanes, lanes, combine))
        return steps

    def combined(self, buffer: Buffer, begin: int, count: int, combine: Combine) -> Statement:
        """Return the statement that combines some elements from a position on into the first ones."""
        return self.lanes(
            count,
            lambda lane: store(
                buffer, (lane,), combine(load(buffer, (lane,)), load(buffer, (lane + begin,)))
            ),
        )

    def weighted_sums(
        self, head: Expression, begin: Expression, at: Expression, rows: int, shares: Buffer
    ) -> Statement:
        """Return the statement that adds up values of some rows, by their shares."""
        tile = self.buffer("sums", rows, self.across)

        def add(key: Expression) -> Statement:
            return self.unrolled(
                rows,
                self.across,
                lambda row, lane: store(
                    tile,
                    (row, lane),
                    load(tile, (row, lane))
                    + load(self.scores, (row, key))
                    * load(self.values, (self.first_row + key, self.shared, at * self.across + lane)),
                ),
            )

        def finish(row: Expression, lane: Expression) -> Statement:
            index = self.first + begin + row, head, at * self.across + lane
            return store(self.result, index, load(tile, (row, lane)) * load(shares, (row,)))

        steps = [
            self.unrolled(rows, self.across, lambda row, lane: store(tile, (row, lane), const(0.0))),
            self.loop(MOST_TOKENS, add, count=self.key_count),
            self.unrolled(rows, self.across, finish),
        ]
        return Allocate(tile, block(steps))

    def unrolled(
        self, rows: int, width: int, body: Callable[[Expression, Expression], Statement]
    ) -> Statement:
        """Return unrolled rows of vectors."""
        return self.loop(rows, lambda row: self.lanes(width, lambda lane: body(row, lane)), ForKind.UNROLLED)
