import ml_dtypes
import numpy as np
import pytest
from tests.each_case import each_case

from intarsia.ir import DType


@each_case("dtype", [dtype for dtype in DType if dtype is not DType.STRING])
def test_names_are_those_of_numpy_and_ml_dtypes(dtype: DType) -> None:
    assert dtype.numpy.name == dtype.value
    assert DType.of(np.zeros(1, dtype.numpy)) is dtype


def test_strings_are_object_arrays() -> None:
    assert DType.STRING.numpy == np.dtype(object)
    assert DType.of(np.array(["a"], object)) is DType.STRING
    assert DType.of(np.array(["a"])) is DType.STRING


def test_equals_its_name() -> None:
    assert DType("float32") is DType.FLOAT32
    assert {"float32": 1}[DType.FLOAT32] == 1


def test_kinds() -> None:
    assert [d for d in DType if d.is_float and d.is_integer] == []
    neither = {DType.BOOL, DType.COMPLEX64, DType.COMPLEX128, DType.STRING}
    assert {d for d in DType if not d.is_float and not d.is_integer} == neither
    assert DType.BFLOAT16.is_float
    assert DType.UINT4.is_integer


def test_bfloat16_is_that_of_ml_dtypes() -> None:
    assert DType.BFLOAT16.numpy == np.dtype(ml_dtypes.bfloat16)


def test_dates_are_refused() -> None:
    with pytest.raises(ValueError, match="datetime64"):
        DType.of(np.zeros(1, "datetime64[s]"))
