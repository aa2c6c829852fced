"""Loops that threads share where there is enough work."""

from __future__ import annotations

import pytest

from intarsia.ir import DType
from intarsia.ir.prim_func import Arith, Buffer, For, ForKind
from intarsia.native.sizes.shared_loops import SharedLoops
from intarsia.native.te.functions import const
from intarsia.native.te.operators.loop_nest import load, store

RESULT = Buffer("y", (100,), DType.FLOAT32)
COUNT = Buffer("count", (), DType.INT64)
NAMES = "group", "number"


def loop(shared: SharedLoops, *, has_work: bool = True) -> For:
    """Return a loop with 10 elements of work in an iteration."""
    count = load(COUNT, ())
    work = count * 10 if has_work else None
    return shared.loop(NAMES, 100, count, work, lambda at: store(RESULT, (at,), const(1.0)))


@pytest.mark.parametrize(("threads", "has_work"), [(1, True), (2, False)])
def test_one_thread_and_loops_in_parallel_ones_are_plain_loops(threads: int, has_work: bool) -> None:
    result = loop(SharedLoops(threads, 50), has_work=has_work)
    assert result.kind is ForKind.SERIAL
    assert result.count == load(COUNT, ()).scalar


def test_threads_share_a_loop_from_the_least_work_on() -> None:
    """The outer loop has all iterations from 50 elements on; the inner one below."""
    outer = loop(SharedLoops(2, 50))
    inner = outer.body
    assert isinstance(inner, For)
    assert (outer.kind, inner.kind) == (ForKind.PARALLEL, ForKind.SERIAL)
    whole = load(COUNT, ()).scalar
    is_shared = (load(COUNT, ()) * 10 >= 50).scalar
    assert isinstance(outer.count, Arith)
    assert isinstance(inner.count, Arith)
    assert outer.count.operands[:2] == (is_shared, whole)
    assert inner.count.operands[::2] == (is_shared, whole)


@pytest.mark.parametrize(
    ("threads", "count", "is_even"), [(1, 8, False), (2, 1, False), (2, 3, True), (8, 4, False)]
)
def test_few_planes_are_no_even_shares(threads: int, count: int, is_even: bool) -> None:
    assert SharedLoops(threads, 1).is_even(count) is is_even
