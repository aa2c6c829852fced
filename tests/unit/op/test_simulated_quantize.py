"""intarsia::simulated_quantize: its type, its value, and its text."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.parallel_programs import image
from tests.quantised_programs import by_onnx

from intarsia.ir import Constant, DType, TensorType, Var
from intarsia.op import call
from intarsia.op.evaluate import evaluate_call
from intarsia.op.simulated_quantize_op import simulated_quantize_value
from intarsia.support.errors import InvalidModelError


def test_without_a_scale_it_is_the_identity() -> None:
    x = Constant(np.array([0.1, -7.0], np.float32))
    mark = call("simulated_quantize", x, domain="intarsia", axis=-1, dtype="uint8", key=0)
    value = evaluate_call(mark)
    assert isinstance(value, np.ndarray)
    assert value.tolist() == x.data.tolist()


@given(
    seed=st.integers(0, 999),
    dtype=st.sampled_from([np.uint8, np.int8]),
    axis=st.integers(-1, 2),
    exponent=st.integers(-6, 3),
)
def test_the_value_is_that_of_onnx(seed: int, dtype: type[np.generic], axis: int, exponent: int) -> None:
    rng = np.random.default_rng(seed)
    x = (rng.standard_normal((2, 3, 4)) * 4).astype(np.float32)
    shape = () if axis < 0 else (x.shape[axis],)
    scale = (rng.uniform(0.5, 2, shape) * 2.0**exponent).astype(np.float32)
    zero = rng.integers(0, 100, shape).astype(dtype)
    expected = by_onnx(x, scale, zero, axis)
    np.testing.assert_array_equal(simulated_quantize_value(x, scale, zero, axis), expected)


@pytest.mark.parametrize(
    ("dtype", "target", "message"),
    [
        (
            DType.INT32,
            "uint8",
            "operator 'intarsia::simulated_quantize' is for float32, not Tensor[(2,), int32]",
        ),
        (
            DType.FLOAT32,
            "int4",
            "operator 'intarsia::simulated_quantize' has dtype='int4', expected uint8 or int8",
        ),
    ],
)
def test_types_that_are_refused(dtype: DType, target: str, message: str) -> None:
    x = Var("x", checked_type=TensorType((2,), dtype))
    with pytest.raises(InvalidModelError, match=f"^{re.escape(message)}"):
        call("simulated_quantize", x, domain="intarsia", axis=-1, dtype=target, key=0)


def test_the_number_of_arguments() -> None:
    with pytest.raises(InvalidModelError, match="has 5 arguments, expected 1 to 4"):
        call("simulated_quantize", *[image(2)] * 5, domain="intarsia", axis=-1, dtype="uint8", key=0)
