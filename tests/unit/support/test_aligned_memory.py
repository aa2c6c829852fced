import numpy as np
import pytest

from intarsia.support.aligned_memory import ALIGNMENT, aligned_array, allocate_aligned


@pytest.mark.parametrize("size", [1, 1000, 12345])
def test_memory_is_aligned(size: int) -> None:
    memory = allocate_aligned(size)
    assert (memory.ctypes.data % ALIGNMENT, memory.size, memory.dtype.name) == (0, size, "uint8")


@pytest.mark.parametrize("size", [2**60, 2**63 - 1, 2**70])
def test_more_than_there_is(size: int) -> None:
    with pytest.raises(MemoryError):
        allocate_aligned(size)


def test_an_array_is_copied_only_where_it_is_not_aligned() -> None:
    memory = allocate_aligned(ALIGNMENT * 4).view(np.float32).reshape(8, 8)
    memory[...] = np.arange(64).reshape(8, 8)
    assert aligned_array(memory) is memory
    for other in (memory.T, memory.ravel()[1:49].reshape(6, 8)):
        copy = aligned_array(other)
        assert copy.ctypes.data % ALIGNMENT == 0
        assert copy.flags.c_contiguous
        np.testing.assert_array_equal(copy, other)
