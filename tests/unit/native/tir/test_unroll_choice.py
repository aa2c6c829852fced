"""Small loops are unrolled as far as there is room: the busiest ones first."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tir_checks import checked, lines_of, parsed

from intarsia.ir import DType, PrimFunc
from intarsia.ir.loop_walk import Event, walk
from intarsia.ir.prim_func import Buffer, For, ForKind, Literal, LoopVar, Statement, Store
from intarsia.native.tir import UnrollLoop
from intarsia.native.tir.rewriting import block, flat
from intarsia.native.tir.unroll_choice import UnrollLimits, marked_loops
from intarsia.transform import PassContext

BORDERS = """def prim @f(y: Buffer[(64, 4, 3), float32]) {
  for i in 2 { for j in 4 { for k in 3 { y[i, j, k] = 1f32; } } }
  for i in 60 { for j in 4 { for k in 3 { y[i + 2, j, k] = 2f32; } } }
  for i in 2 { for j in 4 { for k in 3 { y[i + 62, j, k] = 3f32; } } }
}"""
VERSIONS = """def prim @f(y: Buffer[(64, 4), float32]) {
  for parallel i in 64 {
    if i < 60 { for j in 4 { y[i, j] = 1f32; } } else { for j in 4 { y[i, j] = 2f32; } }
  }
}"""

EXTENTS = st.tuples(st.integers(1, 6), st.integers(1, 6), st.integers(1, 6))


def marked(text: str, most_stores: int, *, steps: int = 12, depth: int = 8) -> list[str]:
    """The headings of the loops that are marked, in order."""
    body = marked_loops(parsed(text).body, UnrollLimits(steps, depth, most_stores))
    return [f"{loop.var.name} {loop.extent}" for loop in _loops(body) if loop.kind is ForKind.UNROLLED]


def values_of(function: PrimFunc) -> list[int]:
    """How many stores there are of 1, 2 and 3."""
    lines = lines_of(function)
    return [sum(f"= {number}.0f32;" in line for line in lines) for number in (1, 2, 3)]


@pytest.mark.parametrize(
    ("most_stores", "counts"),
    [
        pytest.param(36, [12, 12, 12], id="all"),
        pytest.param(35, [12, 12, 3], id="the last border keeps a loop"),
        pytest.param(16, [3, 12, 1], id="inner loops of a border"),
        pytest.param(14, [1, 12, 1], id="the main part only"),
        pytest.param(13, [3, 3, 3], id="no room for any whole nest"),
        pytest.param(3, [1, 1, 1], id="no room at all"),
        pytest.param(0, [1, 1, 1], id="less room than there was"),
    ],
)
def test_the_main_part_comes_before_borders(most_stores: int, counts: list[int]) -> None:
    with PassContext(config={"tir.UnrollLoop": {"auto_max_step": 12, "auto_max_stores": most_stores}}):
        assert values_of(checked(UnrollLoop(), parsed(BORDERS))) == counts


def test_of_two_versions_the_first_one_is_the_main_one() -> None:
    with PassContext(config={"tir.UnrollLoop": {"auto_max_step": 4, "auto_max_stores": 5}}):
        assert values_of(checked(UnrollLoop(), parsed(VERSIONS))) == [4, 1, 0]


def test_marked_loops_are_unrolled_whatever_it_comes_to() -> None:
    text = BORDERS.replace("for i in 60", "for unrolled i in 60")
    with PassContext(config={"tir.UnrollLoop": {"auto_max_step": 12, "auto_max_stores": 70}}):
        after = checked(UnrollLoop(), parsed(text), is_idempotent=False)  # then each copy is one of its own
    assert values_of(after) == [3, 60, 3]


def test_copies_of_a_loop_count_as_often_as_they_are_written() -> None:
    text = BORDERS.replace("for i in 2 {", "for unrolled i in 2 {", 1)
    assert marked(text, 26) == ["i 2", "k 3", "j 4", "k 3", "k 3"]
    assert marked(text, 18) == ["i 2", "j 4", "k 3", "k 3"]


def test_equal_parts_are_apart_though_they_are_one_object() -> None:
    function = parsed(VERSIONS)
    assert isinstance(function.body, For)
    inner = _loops(function.body.body)[0]
    twice = block([For(LoopVar("a"), 9, inner), For(LoopVar("b"), 2, inner)])
    kinds = [loop.kind for loop in _loops(marked_loops(twice, UnrollLimits(4, 8, 5)))]
    assert kinds == [ForKind.SERIAL, ForKind.UNROLLED, ForKind.SERIAL, ForKind.SERIAL]


def test_nothing_small_leaves_the_object() -> None:
    body = parsed(BORDERS).body
    assert marked_loops(body, UnrollLimits(2, 8, 100)) is body
    assert marked_loops(body, UnrollLimits(12, 8, 0)) is body


def test_no_deeper_than_asked() -> None:
    assert marked(BORDERS, 100, depth=1) == ["k 3", "k 3", "k 3"]


@given(st.integers(0, 400), st.integers(0, 40), st.lists(EXTENTS, min_size=1, max_size=4))
def test_the_function_never_has_more_stores_than_allowed(
    most_stores: int, steps: int, extents: list[tuple[int, int, int]]
) -> None:
    """Unless it has them without small loops; another run finds no room either."""
    nests = [_nest(number, *extents) for number, extents in enumerate(extents)]
    body = block(nests)
    limits = UnrollLimits(steps, 8, most_stores)
    after = marked_loops(body, limits)
    assert _stores(body) <= _stores(after) <= max(most_stores, _stores(body))
    assert marked_loops(after, limits) is after


def _nest(number: int, outer: int, middle: int, inner: int) -> Statement:
    """Three loops, the middle one marked for odd numbers."""
    i, j, k = (LoopVar(name) for name in "ijk")
    store = Store(Buffer("y", (64, 64, 64), DType.FLOAT32), (i, j, k), Literal(1.0, DType.FLOAT32))
    kind = ForKind.UNROLLED if number % 2 else ForKind.SERIAL
    return For(i, outer, For(j, middle, For(k, inner, store), kind))


def _loops(body: Statement) -> list[For]:
    entered = [visit.statement for visit in walk(body) if visit.event is Event.ENTER]
    return [one for one in entered if isinstance(one, For)]


def _stores(body: Statement) -> int:
    """How many there are when what is marked is unrolled."""
    match body:
        case Store():
            return 1
        case For(kind=ForKind.UNROLLED):
            return body.extent * _stores(body.body)
        case For():
            return _stores(body.body)
        case _:
            return sum(map(_stores, flat(body)))
