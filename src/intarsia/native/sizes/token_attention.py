"""The loop function of attention among any number of tokens, which is an argument of the kernel at run time.

All tensors have their tokens one behind another, so that the number of tokens is in no stride:

    for parallel head
      keys of the head in panels, as wide as a register tile; the last panel is filled with zeros
      biases of the scores by key; -inf where there is no key
      for tile in 1024 count (tokens[] + 7) floordiv 8
        for each number of rows that may be left for the last tile
          scores of the rows with all keys, in scratch memory, a tile of rows by a panel at a time
          softmax of each row, without the division
          values by these weights, divided by the sum of the weights

Only the tokens that are there are read. Scores and panels have scratch memory for the most tokens, of which
fewer tokens touch a part.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final

from intarsia.ir import Attrs, DType
from intarsia.ir.prim_func import Allocate, Buffer, For, ForKind, LoopVar, PrimFunc, Statement
from intarsia.native.dag import ComputeDAG
from intarsia.native.execution.most_items import MOST_TOKENS
from intarsia.native.machine.isa import Isa
from intarsia.native.te import Expression, exp, maximum, select
from intarsia.native.te.expression import literal
from intarsia.native.te.functions import const
from intarsia.native.te.op_attrs import (
    ATTENTION_INPUTS,
    ATTENTION_REPLACES,
    ATTENTION_SCALE,
)
from intarsia.native.te.operators.loop_nest import load, store, when
from intarsia.native.tir.rewriting import block
from intarsia.support.errors import CompileError
from intarsia.support.free_names import NameSupply

TOKENS: Final = "tokens"
"""Name of the last parameter: a scalar, the number of tokens."""
_FIRST: Final = literal(0, DType.INT64)
_PANEL_VECTORS: Final = 3
"""Number of vectors in a row of a register tile."""
_MANY_REGISTERS: Final = 32
"""Number of vector registers with which a tile has 8 rows by 3 vectors; with fewer it has 4."""


@dataclass(frozen=True, slots=True)
class TokenAttention:
    """Attention of one text with itself.

    Attributes:
        heads: Number of heads.
        size: Number of elements of a query and of a key.
        value_size: Number of elements of a value.
        scale: Factor of the products of queries and keys.
        biases: For each bias of the scores by key its numbers of tokens and of heads; 1 if all have the same.
            With two of them the first is for keys up to the query's position, the second for later ones.
        replaces: Whether the second bias stands in place of scores; else it is added to them.
        arguments: Names of the parameters with queries, keys, values and biases.
        params: Names of all parameters that are read, in order, each once.
        result: Name of the parameter that is written.
    """

    heads: int
    size: int
    value_size: int
    scale: float
    biases: tuple[tuple[int, int], ...]
    replaces: bool
    arguments: tuple[str, ...]
    params: tuple[str, ...]
    result: str


def token_attention_of(dag: ComputeDAG, carrying: Collection[str]) -> TokenAttention | None:
    """Return the attention among items that a DAG for one item stands for; None if there is none.

    Args:
        dag: Computation for one item.
        carrying: Names of the placeholders that have each item.

    Raises:
        CompileError: Queries, keys or values are the same for all items.
    """
    op = dag.outputs[0].op
    names = op.attrs.get(ATTENTION_INPUTS)
    if not isinstance(names, tuple):
        return None
    placeholders = {tensor.op.name: tensor for tensor in dag.placeholders}
    tensors = [placeholders[str(name)] for name in names]
    query, _, value, *biases = tensors
    if any(tensor.op.name not in carrying for tensor in tensors[:3]):
        raise CompileError("attention reads what is the same for all tokens")
    scale = op.attrs[ATTENTION_SCALE]
    assert isinstance(scale, float)
    return TokenAttention(
        query.shape[1],
        query.shape[3],
        value.shape[3],
        scale,
        tuple((MOST_TOKENS if bias.op.name in carrying else 1, bias.shape[1]) for bias in biases),
        op.attrs[ATTENTION_REPLACES] == 1,
        tuple(tensor.op.name for tensor in tensors),
        tuple(placeholders),
        dag.outputs[0].buffer.name,
    )


def attention_function(form: TokenAttention, isa: Isa) -> PrimFunc:
    """Return the loop function; `default_tir` has to run on it.

    Its parameters are queries (tokens, heads, size), keys, values (tokens, heads, value size), the biases,
    the result (tokens, heads, value size), and the number of tokens. All elements are float32.

    Args:
        form: Sizes and names.
        isa: Instruction set of the code.
    """
    return _Writer(form, isa).function()


@dataclass(eq=False)
class _Writer:
    """Writer of the statements of one loop function."""

    form: TokenAttention
    isa: Isa

    def __post_init__(self) -> None:
        form, most = self.form, MOST_TOKENS
        self.names = NameSupply((*form.params, form.result))
        lanes = self.isa.vector_bytes // DType.FLOAT32.numpy.itemsize
        self.width = lanes * _PANEL_VECTORS
        self.height = 8 if self.isa.vector_registers >= _MANY_REGISTERS else 4
        panels = -(-most // self.width)
        shapes = [(most, form.heads, size) for size in (form.size, form.size, form.value_size)]
        params: dict[str, Buffer] = {}
        for name, shape in zip(form.arguments, (*shapes, *form.biases), strict=True):
            params.setdefault(name, Buffer(name, shape, DType.FLOAT32))
        self.params = [params[name] for name in form.params]
        self.queries, self.keys, self.values, *self.biases = (params[name] for name in form.arguments)
        self.result = Buffer(form.result, shapes[2], DType.FLOAT32)
        self.tokens = Buffer(self.names.fresh(TOKENS), (), DType.INT64)
        self.panels = self._buffer("panels", panels, form.size, self.width)
        self.rows = [self._buffer("summands", panels * self.width) for _ in form.biases or (False,)]
        self.scores = self._buffer("scores", self.height, panels * self.width)
        # As wide as a tile while registers last; a divisor, so that no remainder is left.
        vectors = math.gcd(form.value_size, lanes)
        count = form.value_size // vectors
        self.across = vectors * max(n for n in range(1, _PANEL_VECTORS + 1) if count % n == 0)

    def function(self) -> PrimFunc:
        head = LoopVar(self.names.fresh("head"))
        body = block(
            [
                self._panels(Expression(head)),
                self._summands(Expression(head)),
                self._tiles(Expression(head)),
            ]
        )
        for buffer in (self.panels, *self.rows, self.scores):
            body = Allocate(buffer, body)
        params = (*self.params, self.result, self.tokens)
        return PrimFunc(params, For(head, self.form.heads, body, ForKind.PARALLEL), Attrs({"contract": True}))

    def _buffer(self, name: str, *shape: int) -> Buffer:
        return Buffer(self.names.fresh(name), shape, DType.FLOAT32)

    @property
    def _count(self) -> Expression:
        return load(self.tokens, ())

    def _loop(
        self,
        extent: int,
        body: Callable[[Expression], Statement],
        kind: ForKind = ForKind.SERIAL,
        count: Expression | None = None,
    ) -> For:
        var = LoopVar(self.names.fresh("i"))
        return For(var, extent, body(Expression(var)), kind, None if count is None else count.scalar)

    def _lanes(self, extent: int, body: Callable[[Expression], Statement]) -> For:
        return self._loop(extent, body, ForKind.VECTORIZED)

    def _each_panel(self, body: Callable[[Expression], Statement]) -> For:
        count = (self._count + (self.width - 1)) // self.width
        return self._loop(self.panels.shape[0], body, count=count)

    def _panels(self, head: Expression) -> Statement:
        """Copy the keys of a head, transposed within each panel, with zeros behind the last one."""

        def panel(at: Expression) -> Statement:
            def copy(key: Expression) -> Statement:
                token = at * self.width + key
                return self._loop(
                    self.form.size,
                    lambda e: store(self.panels, (at, e, key), load(self.keys, (token, head, e))),
                )

            def clear(key: Expression) -> Statement:
                zero = const(0.0)
                return self._loop(self.form.size, lambda e: store(self.panels, (at, e, key), zero))

            def copy_or_clear(key: Expression) -> Statement:
                return when(at * self.width + key < self._count, copy(key), clear(key))

            return when(
                (at + 1) * self.width <= self._count,
                self._loop(self.width, copy),
                self._loop(self.width, copy_or_clear),
            )

        return self._each_panel(panel)

    def _summands(self, head: Expression) -> Statement:
        """Copy the biases of a head, with -inf for keys that are not there."""

        def panel(at: Expression) -> Statement:
            def key(lane: Expression) -> Statement:
                token = at * self.width + lane
                there, missing = [], []
                for number, row in enumerate(self.rows):
                    there.append(store(row, (token,), self._bias(number, token, head)))
                    missing.append(store(row, (token,), const(-math.inf)))
                return when(token < self._count, block(there), block(missing))

            return self._loop(self.width, key)

        return self._each_panel(panel)

    def _bias(self, number: int, token: Expression, head: Expression) -> Expression:
        """Return what is added to the score of a key, by the number of the bias; 0 without biases."""
        if not self.biases:
            return const(0.0)
        bias = self.biases[number]
        indices = [
            index if extent > 1 else _FIRST for index, extent in zip((token, head), bias.shape, strict=True)
        ]
        return load(bias, indices)

    def _tiles(self, head: Expression) -> Statement:
        def tile(at: Expression) -> Statement:
            begin = at * self.height
            bodies = [self._tile(head, begin, rows) for rows in range(1, self.height + 1)]
            rest = bodies[0]
            for rows, body in enumerate(bodies[1:], 2):
                rest = when(begin + rows <= self._count, body, rest)
            return rest

        count = (self._count + (self.height - 1)) // self.height
        return self._loop(-(-MOST_TOKENS // self.height), tile, count=count)

    def _tile(self, head: Expression, begin: Expression, rows: int) -> Statement:
        """Return the statement for some queries, with all keys."""
        shares = self._buffer("shares", rows)
        body = block(
            [
                self._each_panel(lambda at: self._scores(head, begin, at, rows)),
                self._loop(rows, lambda row: self._softmax(row, shares)),
                self._loop(
                    self.form.value_size // self.across,
                    lambda at: self._sums(head, begin, at, rows, shares),
                ),
            ]
        )
        return Allocate(shares, body)

    def _scores(self, head: Expression, begin: Expression, at: Expression, rows: int) -> Statement:
        tile = self._buffer("tile", rows, self.width)

        def product(e: Expression) -> Statement:
            return self._unrolled(
                rows,
                self.width,
                lambda row, lane: store(
                    tile,
                    (row, lane),
                    load(tile, (row, lane))
                    + load(self.queries, (begin + row, head, e)) * load(self.panels, (at, e, lane)),
                ),
            )

        def finish(row: Expression, lane: Expression) -> Statement:
            key = at * self.width + lane
            score = load(tile, (row, lane)) * const(self.form.scale)
            value = score + load(self.rows[0], (key,))
            if len(self.rows) > 1:
                later = load(self.rows[1], (key,))
                value = select(key <= begin + row, value, later if self.form.replaces else score + later)
            return store(self.scores, (row, key), value)

        clear = self._unrolled(rows, self.width, lambda row, lane: store(tile, (row, lane), const(0.0)))
        steps = [clear, self._loop(self.form.size, product), self._unrolled(rows, self.width, finish)]
        return Allocate(tile, block(steps))

    def _softmax(self, row: Expression, shares: Buffer) -> Statement:
        """Replace the scores of a row by powers, and write the reciprocal of their sum."""
        largest, total = self._buffer("largest", self.width), self._buffer("total", self.width)

        def widest(at: Expression) -> Statement:
            return self._lanes(
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
                difference = load(self.scores, index) - load(largest, (_FIRST,))
                return store(self.scores, index, exp(difference))

            def add(lane: Expression) -> Statement:
                index = row, at * self.width + lane
                return store(total, (lane,), load(total, (lane,)) + load(self.scores, index))

            return block([self._lanes(self.width, value), self._lanes(self.width, add)])

        steps = [
            self._lanes(self.width, lambda lane: store(largest, (lane,), const(-math.inf))),
            self._each_panel(widest),
            *self._folded(largest, maximum),
            self._lanes(self.width, lambda lane: store(total, (lane,), const(0.0))),
            self._each_panel(power),
            *self._folded(total, lambda left, right: left + right),
            store(shares, (row,), const(1.0) / load(total, (_FIRST,))),
        ]
        return Allocate(largest, Allocate(total, block(steps)))

    def _folded(
        self, buffer: Buffer, combine: Callable[[Expression, Expression], Expression]
    ) -> Sequence[Statement]:
        """Return statements that combine all elements of a buffer into its first one, by halves."""
        lanes = self.width // _PANEL_VECTORS

        def add(begin: int, count: int) -> Statement:
            return self._lanes(
                count,
                lambda lane: store(
                    buffer, (lane,), combine(load(buffer, (lane,)), load(buffer, (lane + begin,)))
                ),
            )

        steps = [add(lanes * vector, lanes) for vector in range(1, _PANEL_VECTORS)]
        while lanes > 1:
            lanes //= 2
            steps.append(add(lanes, lanes))
        return steps

    def _sums(
        self, head: Expression, begin: Expression, at: Expression, rows: int, shares: Buffer
    ) -> Statement:
        tile = self._buffer("sums", rows, self.across)

        def add(key: Expression) -> Statement:
            return self._unrolled(
                rows,
                self.across,
                lambda row, lane: store(
                    tile,
                    (row, lane),
                    load(tile, (row, lane))
                    + load(self.scores, (row, key)) * load(self.values, (key, head, at * self.across + lane)),
                ),
            )

        def finish(row: Expression, lane: Expression) -> Statement:
            index = begin + row, head, at * self.across + lane
            return store(self.result, index, load(tile, (row, lane)) * load(shares, (row,)))

        steps = [
            self._unrolled(rows, self.across, lambda row, lane: store(tile, (row, lane), const(0.0))),
            self._loop(MOST_TOKENS, add, count=self._count),
            self._unrolled(rows, self.across, finish),
        ]
        return Allocate(tile, block(steps))

    def _unrolled(
        self, rows: int, width: int, body: Callable[[Expression, Expression], Statement]
    ) -> Statement:
        return self._loop(
            rows, lambda row: self._lanes(width, lambda lane: body(row, lane)), ForKind.UNROLLED
        )
