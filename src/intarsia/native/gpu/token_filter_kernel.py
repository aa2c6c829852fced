"""The kernel of intarsia::token_filter: a block has the threads of a token, each with some channels of it."""

from __future__ import annotations

from intarsia.ir import Attrs, DType
from intarsia.ir.prim_func import Allocate, Buffer, For, ForKind, LoopVar, MemoryScope, PrimFunc, Statement
from intarsia.native.execution.item_kind import NUMBER_OF, ItemKind
from intarsia.native.execution.most_items import MOST_ITEMS
from intarsia.native.gpu.text_kernels import CountedKernel, rounded_threads
from intarsia.native.sizes import TokenFilter
from intarsia.native.sizes.text_loops import FIRST, LENGTH, TEXTS
from intarsia.native.te import Expression
from intarsia.native.te.functions import const
from intarsia.native.te.operators.loop_nest import load, store, when
from intarsia.native.tir.rewriting import block
from intarsia.support.free_names import NameSupply


def token_filter_kernel(form: TokenFilter) -> CountedKernel:
    """Return the kernel of a form, with the parameters of `native.sizes.filter_function`."""
    names = NameSupply((*form.params, form.writes))
    x = Buffer(form.tokens, (MOST_ITEMS, form.channels), form.dtype)
    taps = Buffer(form.taps, (form.neighbours, form.channels), form.dtype)
    y = Buffer(form.writes, (MOST_ITEMS, form.channels), form.dtype)
    texts, length = (Buffer(names.fresh(name), (), DType.INT64) for name in (TEXTS, LENGTH))
    total = Buffer(names.fresh("total"), (1,), form.dtype, MemoryScope.REGISTER)
    threads = rounded_threads(form.channels)
    row, thread, turn, neighbour = (LoopVar(names.fresh(name)) for name in ("block", "thread", "i", "at"))
    number, column = Expression(row), Expression(turn) * threads + Expression(thread)
    position = number % load(length, ())
    begin, count = form.first_in_text(position), form.neighbours_in_text(position, load(length, ()))
    at = begin + Expression(neighbour)
    near = number + at * form.step + form.first
    following = load(total, (FIRST,)) + load(x, (near, column)) * load(taps, (at, column))
    sums = For(neighbour, form.neighbours, store(total, (FIRST,), following), count=count.scalar)
    steps: list[Statement] = [
        store(total, (FIRST,), const(0.0, form.dtype)),
        sums,
        store(y, (number, column), load(total, (FIRST,))),
    ]
    turns = For(turn, -(-form.channels // threads), when(column < form.channels, block(steps)))
    nest = For(thread, threads, Allocate(total, turns), ForKind.THREAD)
    tokens = load(texts, ()) * load(length, ())
    body = For(row, MOST_ITEMS, nest, ForKind.BLOCK, tokens.scalar)
    buffers = {form.tokens: x, form.taps: taps}
    params = (*(buffers[name] for name in form.params), y, texts, length)
    return CountedKernel(PrimFunc(params, body, Attrs({"contract": True})), NUMBER_OF[ItemKind.TOKENS])
