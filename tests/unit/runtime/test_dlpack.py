"""Arrays of bfloat16 by DLPack, which NumPy does not exchange."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from intarsia.runtime.dlpack import bfloat16_from_dlpack, to_dlpack

ARRAY = np.arange(6, dtype=np.float32).reshape(2, 3).astype(ml_dtypes.bfloat16)


def test_an_array_comes_back_over_the_same_memory() -> None:
    array = ARRAY.copy()
    back = bfloat16_from_dlpack(to_dlpack(array))
    assert back is not None
    assert back.dtype == array.dtype
    np.testing.assert_array_equal(back, array)
    array[1, 2] = 9
    assert back[1, 2] == 9


def test_strides_are_kept() -> None:
    back = bfloat16_from_dlpack(to_dlpack(ARRAY.copy().T))
    assert back is not None
    np.testing.assert_array_equal(back, ARRAY.T)


def test_memory_lives_as_long_as_the_array() -> None:
    back = bfloat16_from_dlpack(to_dlpack(np.full(1 << 16, 2, ml_dtypes.bfloat16)))
    assert back is not None
    _ = [np.full(1 << 16, 3, ml_dtypes.bfloat16) for _ in range(8)]
    assert (back == 2).all()


def test_other_types_go_through_numpy() -> None:
    array = np.arange(3, dtype=np.float32)
    assert bfloat16_from_dlpack(array) is None
    np.testing.assert_array_equal(np.from_dlpack(to_dlpack(array)), array)


def test_torch_takes_and_gives_bfloat16() -> None:
    torch = pytest.importorskip("torch")
    tensor = torch.from_dlpack(to_dlpack(ARRAY.copy()))
    assert tensor.dtype == torch.bfloat16
    back = bfloat16_from_dlpack(tensor.t())
    assert back is not None
    np.testing.assert_array_equal(back, ARRAY.T)
