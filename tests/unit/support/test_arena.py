from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from intarsia.support.arena import ArenaPlan, Lifetime, plan_arena_by_size, plan_arena_by_time

ALIGNMENT = 64

lifetimes = st.lists(
    st.builds(
        lambda size, first, length: Lifetime(size, first, first + length),
        st.integers(0, 1000),
        st.integers(0, 20),
        st.integers(0, 10),
    ),
    max_size=40,
)


@given(lifetimes)
def test_no_two_live_buffers_overlap(buffers: list[Lifetime]) -> None:
    for plan in (plan_arena_by_time(buffers, ALIGNMENT), plan_arena_by_size(buffers, ALIGNMENT)):
        for (a, start_a), (b, start_b) in combinations(zip(buffers, plan.offsets, strict=True), 2):
            if a.first <= b.last and b.first <= a.last and a.size and b.size:
                assert start_a + a.size <= start_b or start_b + b.size <= start_a


@given(lifetimes)
def test_empty_buffers_by_time_have_bytes_of_their_own(buffers: list[Lifetime]) -> None:
    offsets = plan_arena_by_time(buffers, ALIGNMENT).offsets
    for (a, start_a), (b, start_b) in combinations(zip(buffers, offsets, strict=True), 2):
        assert start_a != start_b or a.last < b.first or b.last < a.first


@given(lifetimes)
def test_every_buffer_is_aligned_and_inside(buffers: list[Lifetime]) -> None:
    for plan in (plan_arena_by_time(buffers, ALIGNMENT), plan_arena_by_size(buffers, ALIGNMENT)):
        for buffer, offset in zip(buffers, plan.offsets, strict=True):
            assert offset % ALIGNMENT == 0
            assert 0 <= offset <= plan.size - buffer.size


@given(lifetimes)
def test_the_arena_is_never_larger_than_all_buffers_together(buffers: list[Lifetime]) -> None:
    everything = sum(max(1, -(-each.size // ALIGNMENT)) * ALIGNMENT for each in buffers)
    assert plan_arena_by_time(buffers, ALIGNMENT).size <= everything
    assert plan_arena_by_size(buffers, ALIGNMENT).size <= everything


def test_a_chain_needs_two_buffers() -> None:
    chain = [Lifetime(640, step, step + 1) for step in range(1000)]
    assert plan_arena_by_time(chain, ALIGNMENT).size == 2 * 640
    assert plan_arena_by_size(chain, ALIGNMENT).size == 2 * 640


def test_by_time_the_smallest_gap_that_fits_is_taken() -> None:
    buffers = [
        Lifetime(256, 0, 0), Lifetime(64, 0, 9), Lifetime(128, 0, 0), Lifetime(64, 0, 9), Lifetime(128, 1, 9)
    ]  # fmt: skip
    assert plan_arena_by_time(buffers, ALIGNMENT).offsets[4] == 320


def test_by_size_the_smallest_gap_that_fits_is_taken() -> None:
    buffers = [
        Lifetime(256, 0, 0), Lifetime(192, 0, 5), Lifetime(128, 0, 0), Lifetime(100, 0, 5), Lifetime(60, 1, 1)
    ]  # fmt: skip
    assert plan_arena_by_size(buffers, ALIGNMENT) == ArenaPlan((0, 256, 448, 576, 448), 704)


def test_largest_first_wastes_less() -> None:
    buffers = [Lifetime(64, 0, 1), Lifetime(64, 0, 0), Lifetime(128, 1, 2)]
    assert plan_arena_by_time(buffers, ALIGNMENT).size == 192
    assert plan_arena_by_size(buffers, ALIGNMENT).size == 192
    buffers = [Lifetime(64, 0, 0), Lifetime(64, 0, 2), Lifetime(128, 1, 2)]
    assert plan_arena_by_time(buffers, ALIGNMENT).size == 256
    assert plan_arena_by_size(buffers, ALIGNMENT).size == 192


def test_nothing_needs_nothing() -> None:
    assert plan_arena_by_time((), ALIGNMENT) == plan_arena_by_size((), ALIGNMENT) == ArenaPlan((), 0)
