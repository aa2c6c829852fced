from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from intarsia.runtime.arena import Lifetime, plan_arena
from intarsia.support.aligned_memory import ALIGNMENT

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
    plan = plan_arena(buffers)
    for (a, start_a), (b, start_b) in combinations(zip(buffers, plan.offsets, strict=True), 2):
        if a.first <= b.last and b.first <= a.last:
            assert start_a + a.size <= start_b or start_b + b.size <= start_a


@given(lifetimes)
def test_every_buffer_is_aligned_and_inside(buffers: list[Lifetime]) -> None:
    plan = plan_arena(buffers)
    for buffer, offset in zip(buffers, plan.offsets, strict=True):
        assert offset % ALIGNMENT == 0
        assert 0 <= offset <= plan.size - buffer.size


@given(lifetimes)
def test_the_arena_is_never_larger_than_all_buffers_together(buffers: list[Lifetime]) -> None:
    assert plan_arena(buffers).size <= sum(max(1, -(-b.size // ALIGNMENT)) * ALIGNMENT for b in buffers)


def test_a_chain_needs_two_buffers() -> None:
    chain = [Lifetime(640, step, step + 1) for step in range(1000)]
    assert plan_arena(chain).size == 2 * 640


def test_a_small_buffer_takes_the_smallest_hole_that_fits() -> None:
    buffers = [
        Lifetime(256, 0, 0), Lifetime(64, 0, 9), Lifetime(128, 0, 0), Lifetime(64, 0, 9), Lifetime(128, 1, 9)
    ]  # fmt: skip
    assert plan_arena(buffers).offsets[4] == 320
