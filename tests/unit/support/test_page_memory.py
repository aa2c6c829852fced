"""Large memory in pages of its own."""

from __future__ import annotations

import gc
import mmap
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from intarsia.support import page_memory
from intarsia.support.aligned_memory import ALIGNMENT
from intarsia.support.array_address import array_address
from intarsia.support.page_memory import PageChoice, PageSpace, allocate_pages

_SIZE = 12 << 20
_PRIVATE = getattr(mmap, "MAP_PRIVATE", 0) | getattr(mmap, "MAP_ANONYMOUS", 0)


@pytest.mark.parametrize("size", [1, 100, (1 << 20) - 1, 1 << 20, (9 << 20) + 5])
def test_memory_is_aligned_zero_and_writable(size: int) -> None:
    memory = allocate_pages(size)
    assert memory.shape == (size,)
    assert memory.ctypes.data % ALIGNMENT == 0
    assert not memory.any()
    memory[:] = 7
    assert (memory == 7).all()


def test_too_much_memory_is_refused() -> None:
    with pytest.raises(MemoryError):
        allocate_pages(1 << 62)


def clock(small: float, huge: float) -> Callable[[], float]:
    """Return a clock by which the first measured step takes `small` seconds and all others `huge`."""

    def times() -> Iterator[float]:
        now = 0.0
        for number in range(1 << 20):
            yield now
            now += small if number == 0 else huge
            yield now

    readings = times()
    return lambda: next(readings)


@pytest.mark.skipif(not hasattr(mmap, "MADV_HUGEPAGE"), reason="the system has no huge pages")
@pytest.mark.parametrize(("huge", "expected"), [(0.0001, True), (0.004, True), (0.6, False)])
def test_huge_pages_are_taken_until_they_cost_too_much_more(huge: float, expected: bool) -> None:
    choice = PageChoice(clock(0.0007, huge))
    for _ in range(2):
        pages = mmap.mmap(-1, _SIZE, flags=_PRIVATE)
        choice.fill(pages)
        memory = np.frombuffer(pages, np.uint8)
        assert not memory.any()
        memory[:] = 1
        assert choice.is_huge == expected


def own_space(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let memory come from address space that no other test uses."""
    monkeypatch.setattr(page_memory, "_SPACES", page_memory._Spaces())


@pytest.mark.skipif(not _PRIVATE, reason="the system has no private memory")
def test_pieces_lie_one_behind_another_and_share_no_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    own_space(monkeypatch)
    sizes = [1 << 17, (1 << 20) + 7, 3 << 20, (1 << 17) + 1]
    pieces = [allocate_pages(size) for size in sizes]
    begins = [array_address(piece) for piece in pieces]
    for begin, size, following in zip(begins, sizes, begins[1:], strict=False):
        assert following == begin + size + -size % ALIGNMENT
    for number, piece in enumerate(pieces):
        piece[:] = number + 1
    assert all((piece == number + 1).all() for number, piece in enumerate(pieces))


@pytest.mark.skipif(not _PRIVATE, reason="the system has no private memory")
@given(
    st.lists(
        st.tuples(st.sampled_from([1 << 17, (1 << 20) + 64, 5 << 20, 40 << 20]), st.integers(0, 9)),
        max_size=30,
    )
)
def test_memory_is_zero_and_stays_while_others_come_and_go(actions: list[tuple[int, int]]) -> None:
    alive: dict[int, np.ndarray] = {}
    for number, (size, place) in enumerate(actions):
        alive.pop(place, None)
        memory = alive[place] = allocate_pages(size)
        assert memory.shape == (size,)
        assert not memory[:: mmap.PAGESIZE].any()
        assert not memory[-mmap.PAGESIZE :].any()
        memory[:: mmap.PAGESIZE] = memory[-1] = number % 255 + 1
        marks = {item: int(array[0]) for item, array in alive.items()}
        assert all((alive[item][:: mmap.PAGESIZE] == mark).all() for item, mark in marks.items())
        assert all(alive[item][-1] == mark for item, mark in marks.items())


@pytest.mark.skipif(not _PRIVATE, reason="the system has no private memory")
def test_views_keep_memory_and_the_last_one_gives_it_back(monkeypatch: pytest.MonkeyPatch) -> None:
    own_space(monkeypatch)
    dropped: list[int] = []
    monkeypatch.setattr(PageSpace, "_drop", lambda _, begin: dropped.append(begin))
    first, second = allocate_pages(5 << 20), allocate_pages(2 << 20)
    view = first[1 << 20 :].view(np.float32)
    del first
    assert not dropped
    del view
    assert [number - dropped[0] for number in dropped] == [0, 2 << 20]  # the third has bytes of the second
    dropped.clear()
    del second
    assert len(dropped) == 2


@pytest.mark.skipif(not _PRIVATE, reason="the system has no private memory")
def test_full_address_space_is_followed_by_new_one(monkeypatch: pytest.MonkeyPatch) -> None:
    own_space(monkeypatch)
    monkeypatch.setattr(page_memory, "_RESERVED", 8 << 20)
    pieces = [allocate_pages(2 << 20) for _ in range(11)]
    for number, piece in enumerate(pieces):
        piece[:] = number + 1
    assert all((piece == number + 1).all() for number, piece in enumerate(pieces))
    large = allocate_pages((2 << 20) + 1)  # has address space of its own
    assert array_address(large) % ALIGNMENT == 0
    assert not large.any()


@pytest.mark.skipif(not _PRIVATE, reason="the system has no private memory")
def test_address_space_goes_with_its_last_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    own_space(monkeypatch)
    pieces = [allocate_pages(1 << 20) for _ in range(3)]
    space = page_memory._SPACES._space
    assert space is not None
    del pieces[:2]
    gc.collect()
    assert space() is not None
    pieces.clear()
    gc.collect()
    assert space() is None
