import io
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from intarsia.ir.dtype import DType
from intarsia.runtime.constant_table import ConstantTable
from intarsia.runtime.safetensors_file import StoredTensor, read_tensors, stored, write_tensors
from intarsia.support.aligned_memory import aligned_array
from intarsia.support.errors import ArtifactError

Array = npt.NDArray[Any]
SHORT = b"\x02" + b"\0" * 7
"""The length of a header of two bytes."""


def written(arrays: dict[str, Array]) -> bytes:
    sink = io.BytesIO()
    write_tensors(sink, arrays)
    return sink.getvalue()


def read_back(arrays: dict[str, Array]) -> dict[str, Array]:
    listed = {name: stored(name, array) for name, array in arrays.items()}
    return read_tensors(np.frombuffer(written(arrays), np.uint8), listed, "c.safetensors")


def example(dtype: DType, shape: tuple[int, ...]) -> Array:
    if dtype is DType.STRING:
        return np.array([f"té{i}" for i in range(int(np.prod(shape)))], object).reshape(shape)
    return (np.arange(np.prod(shape)) + 1).reshape(shape).astype(np.float32).astype(dtype.numpy)


@pytest.mark.quick_cases(12)
@pytest.mark.parametrize("dtype", list(DType))
@pytest.mark.parametrize("shape", [(), (0,), (3, 2)])
def test_every_element_type_comes_back(dtype: DType, shape: tuple[int, ...]) -> None:
    array = example(dtype, shape)
    found = read_back({"one": np.ones(1, np.int8), "x": array})["x"]
    assert (found.dtype, found.shape, found.flags.aligned) == (array.dtype, array.shape, True)
    np.testing.assert_array_equal(found, array)


@given(st.lists(st.sampled_from(list(DType)), max_size=8))
def test_any_mixture_comes_back_aligned(dtypes: list[DType]) -> None:
    arrays = {f"t{i}": example(dtype, (i, 3)) for i, dtype in enumerate(dtypes)}
    for name, found in read_back(arrays).items():
        assert found.flags.aligned
        np.testing.assert_array_equal(found, arrays[name])


def test_the_safetensors_library_reads_the_same() -> None:
    from safetensors.numpy import load

    arrays: dict[str, Array] = {
        "a": np.arange(6, dtype=np.float32).reshape(2, 3),
        "b": np.array([True, False]),
        "c": np.array(3.0),
        "d": np.asfortranarray(np.arange(6).reshape(2, 3)),
        "e": np.zeros((0, 2), np.int16),
    }
    found = load(written(arrays))
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


def test_tensors_lie_without_gaps_from_an_aligned_start() -> None:
    import json

    data = written({"a": np.ones(3, np.int8), "b": np.ones(3, np.float64), "c": np.ones(1, np.int16)})
    length = int.from_bytes(data[:8], "little")
    spans = sorted(entry["data_offsets"] for entry in json.loads(data[8 : 8 + length]).values())
    assert (8 + length) % 64 == 0
    assert spans[0][0] == 0
    assert all(before[1] == after[0] for before, after in pairwise(spans))
    assert 8 + length + spans[-1][1] == len(data)


def test_whole_cache_lines_are_aligned() -> None:
    arrays: dict[str, Array] = {
        "a": np.ones(1, np.float64),
        "b": np.ones(16, np.float32),
        "c": np.ones(192, np.int8),
    }
    data = aligned_array(np.frombuffer(written(arrays), np.uint8))
    found = read_tensors(data, {name: stored(name, array) for name, array in arrays.items()}, "c")
    assert [found[name].ctypes.data % 64 for name in "bc"] == [0, 0]


def test_arrays_are_written_without_a_second_copy() -> None:
    import tracemalloc

    class Nowhere:
        def write(self, data: bytes | memoryview) -> None:
            pass

    arrays = {f"t{i}": np.ones(1 << 20, np.float32) for i in range(4)}
    tracemalloc.start()
    try:
        write_tensors(Nowhere(), arrays)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1 << 20


@pytest.mark.parametrize(
    ("data", "tensor", "message"),
    [
        (b"123", StoredTensor("a", "int8", (3,)), "c is damaged: its header is cut off"),
        (b"\xff" * 20, StoredTensor("a", "int8", (3,)), "c is damaged: its header is cut off"),
        (
            SHORT + b"{x",
            StoredTensor("a", "int8", (3,)),
            "c is damaged: its header is not JSON",
        ),
        (
            SHORT + b"[]",
            StoredTensor("a", "int8", (3,)),
            "c is damaged: its header is not an object",
        ),
        (written({"a": np.ones(3, np.int8)}), StoredTensor("b", "int8", (3,)), 'c has no tensor "b"'),
        (
            written({"a": np.ones(3, np.int8)}),
            StoredTensor("a", "int16", (3,)),
            'tensor "a" of c has 3 bytes, expected 6',
        ),
        (written({"a": np.ones(3, np.int8)})[:-1], StoredTensor("a", "int8", (3,)), 'c has no tensor "a"'),
        (
            written({"a": np.ones(3, np.int8)}),
            StoredTensor("a", "string", (3,)),
            'tensor "a" of c is not a list of texts',
        ),
        (
            written({"a": np.array(["x"], object)}),
            StoredTensor("a", "string", (2,)),
            'tensor "a" of c is not 2 texts',
        ),
    ],
)
def test_damaged_files_are_refused(data: bytes, tensor: StoredTensor, message: str) -> None:
    with pytest.raises(ArtifactError) as caught:
        read_tensors(np.frombuffer(data, np.uint8), {"a": tensor}, "c")
    assert str(caught.value) == message


def test_equal_buffers_are_one_constant() -> None:
    table = ConstantTable()
    base = np.arange(12, dtype=np.float32)
    same = [base, base[:], base.reshape(12)]
    other = [base.reshape(3, 4), base[1:], base.view(np.int32), base.copy(), base[::2], base[:6]]
    assert [table.number(array) for array in same] == [0, 0, 0]
    assert [table.number(array) for array in other] == [1, 2, 3, 4, 5, 6]
    assert list(table.named()) == [f"c{i}" for i in range(7)]
