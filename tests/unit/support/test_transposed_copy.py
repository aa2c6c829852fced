"""Transposed copies are those of NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from intarsia.support.transposed_copy import transposed_copy

EXTENT = st.one_of(st.integers(0, 5), st.sampled_from((127, 128, 129, 257, 300)))


@given(rows=EXTENT, columns=EXTENT, step=st.integers(1, 3), dtype=st.sampled_from(("f4", "i1", "f8")))
def test_it_is_the_transpose(rows: int, columns: int, step: int, dtype: str) -> None:
    numbers = np.random.default_rng(0).integers(-100, 100, (rows * step, columns)).astype(dtype)
    matrix = numbers[::step]
    copy = transposed_copy(matrix)
    assert copy.flags.c_contiguous
    assert copy.dtype == matrix.dtype
    assert np.array_equal(copy, matrix.T)
    assert not np.shares_memory(copy, matrix)


def test_strings_are_moved() -> None:
    matrix = np.array([["a", "bc"], ["d", ""]], object)
    assert transposed_copy(matrix).tolist() == [["a", "d"], ["bc", ""]]


def test_only_matrices_are_taken() -> None:
    with pytest.raises(ValueError, match="not enough values"):
        transposed_copy(np.zeros(3))
