import pytest

from intarsia.support.aligned_memory import ALIGNMENT, aligned_bytes


@pytest.mark.parametrize("size", [1, 1000, 12345])
def test_memory_is_aligned(size: int) -> None:
    memory = aligned_bytes(size)
    assert (memory.ctypes.data % ALIGNMENT, memory.size, memory.dtype.name) == (0, size, "uint8")


@pytest.mark.parametrize("size", [2**60, 2**63 - 1, 2**70])
def test_more_than_there_is(size: int) -> None:
    with pytest.raises(MemoryError):
        aligned_bytes(size)
