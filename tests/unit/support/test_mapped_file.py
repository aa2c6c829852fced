"""Pages of mapped files leave the process when they are dropped, and are read again."""

from __future__ import annotations

import mmap
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from intarsia.support.mapped_file import drop_pages, map_file

PAGES = 64
PAGE = mmap.PAGESIZE


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "numbers"
    np.arange(PAGES * PAGE, dtype=np.uint8).tofile(path)
    return path


def resident_bytes(path: Path) -> int:
    """Return the bytes of a mapped file that are in this process's memory, over all its mappings."""
    total, is_inside = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if "-" in line.split(" ", 1)[0]:
            is_inside = line.endswith(str(path))
        elif is_inside and line.startswith("Rss:"):
            total += int(line.split()[1]) * 1024
    return total


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_dropped_pages_leave_the_process(file: Path) -> None:
    array = map_file(file, 0, PAGES * PAGE)
    expected = int(array.sum())
    assert resident_bytes(file) == PAGES * PAGE
    drop_pages(array)
    assert resident_bytes(file) == 0
    assert int(array.sum()) == expected


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_pages_that_an_array_shares_with_others_stay(file: Path) -> None:
    array = map_file(file, 0, PAGES * PAGE)
    array.sum()
    drop_pages(array[PAGE // 2 : 3 * PAGE + PAGE // 2])  # the first and the last page are not only its own
    assert resident_bytes(file) == (PAGES - 2) * PAGE


@given(offset=st.integers(0, 3 * PAGE), cuts=st.tuples(st.integers(0, 20 * PAGE), st.integers(0, 20 * PAGE)))
def test_views_keep_their_elements(
    tmp_path_factory: pytest.TempPathFactory, offset: int, cuts: tuple[int, int]
) -> None:
    path = tmp_path_factory.mktemp("mapped") / "numbers"
    numbers = np.random.default_rng(0).integers(0, 256, 30 * PAGE).astype(np.uint8)
    numbers.tofile(path)
    view = map_file(path, offset, numbers.size - offset)[min(cuts) : max(cuts)]
    expected = numbers[offset:][min(cuts) : max(cuts)]
    assert np.array_equal(view, expected)
    drop_pages(view)
    assert np.array_equal(view, expected)


def test_a_mapped_file_cannot_be_written(file: Path) -> None:
    assert not map_file(file, PAGE, PAGE).flags.writeable


@pytest.mark.parametrize("mode", ["c", "memory"])
def test_what_may_be_the_only_copy_stays(file: Path, mode: str) -> None:
    array: Any = np.memmap(file, np.uint8, mode="c") if mode == "c" else np.zeros(PAGES * PAGE, np.uint8)
    array[:] = 7
    drop_pages(array)
    drop_pages(array[::2])
    assert (array == 7).all()
