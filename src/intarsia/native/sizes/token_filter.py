"""Loop function of intarsia::token_filter for any number of texts and tokens.

for row in 1048576 count texts[] * length[]
for each block of columns
total = 0
for at in 31 count the neighbours that are in the text
total += x[row + (begin + at) * step + first, columns] * taps[begin + at, columns]
y[row, columns] = total
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from intarsia.ir import DType
from intarsia.ir.prim_func import Allocate, Buffer, For, ForKind, LoopVar, PrimFunc, Statement
from intarsia.native.dag import ComputeDAG
from intarsia.native.execution.most_items import MOST_ITEMS
from intarsia.native.machine.isa import Isa
from intarsia.native.sizes.text_loops import FIRST, LENGTH, TEXTS, with_numbers
from intarsia.native.te import Expression, maximum, minimum
from intarsia.native.te.functions import const
from intarsia.native.te.op_attrs import FILTER
from intarsia.native.te.operators.loop_nest import load, store
from intarsia.native.tir.rewriting import block
from intarsia.support.free_names import NameSupply

_BLOCK_VECTORS = 4
"""Number of vectors of a block of columns: their sums do not wait for each other."""


@dataclass(frozen=True, slots=True)
class TokenFilter:
    """A weighted sum of each token's neighbours, channel by channel (op/token_filter_op).

    Attributes:
        tokens: Name of the parameter with the tokens.
        taps: Name of the parameter with the weights.
        params: Names of both, in the order of the kernel's parameters.
        writes: Name of the parameter that is written.
        neighbours: Number of neighbours.
        channels: Number of channels.
        dtype: Type of the elements.
        first: Position of the first neighbour, counted from the token.
        step: Distance from one neighbour to the next.
    """

    tokens: str
    taps: str
    params: tuple[str, ...]
    writes: str
    neighbours: int
    channels: int
    dtype: DType
    first: int
    step: int

    def first_in_text(self, position: Expression) -> Expression:
        """Return the number of the first neighbour that is in the text, for the token at a position."""
        return self._steps(-self.first - position)

    def neighbours_in_text(self, position: Expression, length: Expression) -> Expression:
        """Return the number of neighbours that are in the text, for the token at a position."""
        end = minimum(self._steps(length - position - self.first), self.neighbours)
        return maximum(end - self.first_in_text(position), 0)

    def _steps(self, distance: Expression) -> Expression:
        """Return the number of steps that reach a distance; none for a negative one."""
        return (maximum(distance, 0) + (self.step - 1)) // self.step


def token_filter_of(dag: ComputeDAG) -> TokenFilter | None:
    """Return the filter that a DAG for one token computes; None if it computes something else."""
    result, facts = dag.outputs[0], dag.outputs[0].op.attrs.get(FILTER, ())
    if len(dag.outputs) > 1 or not isinstance(facts, tuple) or not facts:
        return None
    tokens, taps, first, step = facts
    assert isinstance(first, int)
    assert isinstance(step, int)
    shapes = {tensor.op.name: tensor.shape for tensor in dag.placeholders}
    neighbours, channels = shapes[str(taps)]
    return TokenFilter(
        str(tokens),
        str(taps),
        tuple(shapes),
        result.buffer.name,
        neighbours,
        channels,
        result.dtype,
        first,
        step,
    )


def filter_function(form: TokenFilter, isa: Isa, *, is_parallel: bool) -> PrimFunc:
    """Return the loop function; `default_tir` has to run on it.

    Its parameters are what it reads and what it writes, a token behind another, the number of texts, and the
    number of tokens of each.

    Args:
        form: Names and sizes.
        isa: Instruction set of the code.
        is_parallel: Whether threads share the tokens.
    """
    names = NameSupply((*form.params, form.writes))
    x = Buffer(form.tokens, (MOST_ITEMS, form.channels), form.dtype)
    taps = Buffer(form.taps, (form.neighbours, form.channels), form.dtype)
    y = Buffer(form.writes, (MOST_ITEMS, form.channels), form.dtype)
    texts, length = (Buffer(names.fresh(name), (), DType.INT64) for name in (TEXTS, LENGTH))
    width = _BLOCK_VECTORS * max(1, isa.vector_bytes // form.dtype.numpy.itemsize)

    def loop(
        extent: int,
        body: Callable[[Expression], Statement],
        count: Expression | None = None,
        kind: ForKind = ForKind.SERIAL,
    ) -> For:
        var = LoopVar(names.fresh("i"))
        return For(var, extent, body(Expression(var)), kind, None if count is None else count.scalar)

    def lanes(extent: int, body: Callable[[Expression], Statement]) -> For:
        return loop(extent, body, kind=ForKind.VECTORIZED)

    def row(number: Expression) -> Statement:
        position = number % load(length, ())
        begin, count = form.first_in_text(position), form.neighbours_in_text(position, load(length, ()))

        def columns(start: Expression, extent: int) -> Statement:
            total = Buffer(names.fresh("total"), (extent,), form.dtype)

            def add(at: Expression) -> Statement:
                near = number + (begin + at) * form.step + form.first

                def lane(column: Expression) -> Statement:
                    value = load(x, (near, start + column)) * load(taps, (begin + at, start + column))
                    return store(total, (column,), load(total, (column,)) + value)

                return lanes(extent, lane)

            clear = lanes(extent, lambda column: store(total, (column,), const(0.0, form.dtype)))
            sums = loop(form.neighbours, add, count)
            end = lanes(extent, lambda column: store(y, (number, start + column), load(total, (column,))))
            return Allocate(total, block([clear, sums, end]))

        whole, rest = divmod(form.channels, width)
        steps: list[Statement] = [loop(whole, lambda at: columns(at * width, width))] if whole else []
        steps += [columns(FIRST + whole * width, rest)] if rest else []
        return with_numbers([begin, count], block(steps))

    outer = ForKind.PARALLEL if is_parallel else ForKind.SERIAL
    body = loop(MOST_ITEMS, row, load(texts, ()) * load(length, ()), outer)
    buffers = {form.tokens: x, form.taps: taps}
    return PrimFunc((*(buffers[name] for name in form.params), y, texts, length), body)
