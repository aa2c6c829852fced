"""Tensors of requests: what is taken, and what is an error of the client; whatever comes is one of both."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from intarsia.ir.dtype import DType
from intarsia.runtime.plan import TensorInfo
from intarsia.serving.protocol_tensors import datatype_of, has_json_form, read_tensor, shape_of
from intarsia.support.errors import InputError, UsageError

TYPES = [
    "bool",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "float32",
    "float64",
]


def info(dtype: str = "float32", *shape: int | str) -> TensorInfo:
    return TensorInfo("x", dtype, shape)


@pytest.mark.parametrize("dtype", TYPES)
def test_bytes_and_numbers_give_the_same_array(dtype: str) -> None:
    array = np.array([[0, 1, 1], [1, 0, 1]], DType(dtype).numpy)
    name = datatype_of(info(dtype))
    for data in (array.tobytes(), array.tolist(), array.ravel().tolist()):
        read = read_tensor(info(dtype), name, [2, 3], data)
        np.testing.assert_array_equal(read, array)
        assert read.dtype == array.dtype


def test_shapes_of_the_protocol() -> None:
    assert shape_of(info("float32", "n", 3)) == [-1, 3]
    assert read_tensor(info(), "FP32", [0, 4], []).shape == (0, 4)
    assert read_tensor(info(), "FP32", [], [7]).shape == ()


@pytest.mark.parametrize(
    ("dtype", "datatype", "shape", "data", "message"),
    [
        ("float32", "INT64", [1], [1], "has the datatype INT64, expected FP32"),
        ("float32", "FP32", [-1], [1], "expected numbers from 0 on"),
        ("float32", "FP32", ["1"], [1], "expected numbers from 0 on"),
        ("float32", "FP32", [True], [1], "expected numbers from 0 on"),
        ("float32", "FP32", [3], [1, 2], "has 2 elements, its shape .3. has 3"),
        ("float32", "FP32", [10**30], [1], "has 1 elements"),
        ("float32", "FP32", [1], b"12345", "has 5 bytes, which is no multiple of 4"),
        ("float32", "FP32", [2], b"1234", "has 1 elements"),
        ("float32", "FP32", [1], [None], "no numbers of FP32"),
        ("float32", "FP32", [1], None, "no numbers of FP32"),
        ("float32", "FP32", [1], ["1"], "no numbers of FP32"),
        ("float32", "FP32", [1], [True], "no numbers of FP32"),
        ("float32", "FP32", [2], [[1], [2, 3]], "is no array of numbers"),
        ("float32", "FP32", [1], [float("nan")], "NaN or infinity, which JSON lacks"),
        ("float32", "FP32", [1], [1e39], "has numbers beyond FP32"),
        ("float16", "FP16", [1], [70000], "has numbers beyond FP16"),
        ("int32", "INT32", [1], [1.5], "no numbers of INT32"),
        ("int32", "INT32", [1], [2**31], "has numbers beyond INT32"),
        ("uint8", "UINT8", [1], [-1], "has numbers beyond UINT8"),
        ("int64", "INT64", [1], [2**70], "no numbers of INT64"),
        ("bool", "BOOL", [1], [2], "no numbers of BOOL"),
    ],
)
def test_errors_of_clients(dtype: str, datatype: str, shape: list[Any], data: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_tensor(info(dtype), datatype, shape, data)


@pytest.mark.parametrize("dtype", ["bfloat16", "string", "int4", "complex64"])
def test_types_that_the_protocol_lacks(dtype: str) -> None:
    with pytest.raises(UsageError, match="the protocol has no type"):
        datatype_of(info(dtype))


def test_json_lacks_nan_and_the_protocol_lacks_half_precision_there() -> None:
    assert has_json_form(np.ones(2, np.float32))
    assert has_json_form(np.ones(2, np.int64))
    assert not has_json_form(np.array([1, np.nan], np.float32))
    assert not has_json_form(np.array([np.inf]))
    assert not has_json_form(np.ones(2, np.float16))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda items: st.lists(items, max_size=4) | st.dictionaries(st.text(max_size=2), items, max_size=2),
    max_leaves=12,
)


@given(
    st.sampled_from(TYPES),
    st.sampled_from(["FP32", "INT32", "BOOL", ""]),
    st.lists(JSON, max_size=3),
    JSON | st.binary(),
)
def test_whatever_comes_is_an_array_or_an_error(
    dtype: str, datatype: str, shape: list[Any], data: Any
) -> None:
    for name in (datatype, datatype_of(info(dtype))):
        try:
            array = read_tensor(info(dtype), name, shape, data)
        except InputError:
            continue
        assert array.dtype == DType(dtype).numpy
        assert list(array.shape) == shape


@pytest.mark.parametrize("shape", [[0] * 82, [1] * 81, [0, 2**70]])
def test_shapes_that_no_array_has(shape: list[int]) -> None:
    data = [1.0] if 0 not in shape else []
    with pytest.raises(InputError, match="axes that no array has"):
        read_tensor(TensorInfo("x", "float32", ("n", "m")), "FP32", shape, data)
