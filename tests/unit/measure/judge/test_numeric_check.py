"""The check of floating-point outputs on the smallest arrays."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from tests.onnx_models import model_of

from intarsia import from_onnx
from intarsia.measure.inputs import random_inputs
from intarsia.measure.judge.gate import Gate
from intarsia.measure.judge.gate_files import read_gate, write_gate
from intarsia.measure.judge.numeric_check import NumericCheck

SHAPES = [(), (1,), (1, 1), (0,), (0, 3)]


def check_of(value: float, shape: tuple[int, ...], dtype: str = "float32") -> NumericCheck:
    """Return a check of an array that is filled with one value."""
    parts = (2,) if dtype.startswith("complex") else ()
    return NumericCheck(0, "y", np.full(shape, value, dtype), np.full((*shape, *parts), 1e-7))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64"])
@pytest.mark.parametrize("shape", SHAPES)
def test_scalars_and_empty_arrays_are_judged(shape: tuple[int, ...], dtype: str) -> None:
    check = check_of(2, shape, dtype)
    assert check.check([np.full(shape, 2, dtype)]).passed
    report = check.check([np.full(shape, 3, dtype)])
    is_empty = 0 in shape
    assert report.passed == is_empty
    assert report.max_abs_error == (0 if is_empty else 1)
    assert check.loosened(1.0).check([np.full(shape, 2.5, dtype)]).passed


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_scalar_that_is_not_finite_is_compared_in_kind(value: float) -> None:
    check = check_of(value, ())
    assert check.check([np.array(value, np.float32)]).passed
    assert not check.check([np.array(1, np.float32)]).passed


def test_nothing_is_said_of_a_scalar_in_which_judges_differ_without_bound() -> None:
    check = NumericCheck(0, "y", np.array(2, np.float32), np.array(math.inf))
    assert check.check([np.array(5, np.float32)]).passed
    assert check.check([np.array(math.nan, np.float32)]).passed


def test_an_element_in_which_judges_differ_without_bound_does_not_count_in_its_rows() -> None:
    expected = np.linspace(1, 2, 32, dtype=np.float32).reshape(4, 8)
    spread = np.full((4, 8), 1e-7)
    spread[1, 2] = math.inf
    check = NumericCheck(0, "y", expected, spread)
    other, wrong = expected.copy(), expected.copy()
    other[1, 2] = 100
    wrong[1, 3] = 100
    assert check.check([other]).passed
    assert not check.check([wrong]).passed


def test_a_scalar_beside_a_step_may_be_off_by_the_step() -> None:
    check = NumericCheck(0, "y", np.array(2, np.float32), np.array(0.0), slack=np.array(1.0))
    assert check.check([np.array(3, np.float32)]).passed
    assert not check.check([np.array(3.5, np.float32)]).passed


@pytest.mark.quick_cases(6)
@pytest.mark.parametrize(
    "text",
    [
        "g (float[4,4] x) => (float y) { y = ReduceSum<keepdims=0>(x) }",
        "g (float[3,3] x) => (float y) { y = Det(x) }",
        "g (float x) => (float y) { y = Exp(x) }",
        "g (float16[4,4] x) => (float16 y) { y = ReduceMean<keepdims=0>(x) }",
        "g (double[4,4] x) => (double y) { y = ReduceMax<keepdims=0>(x) }",
        "g (int64[4,4] x) => (int64 y) { y = ReduceSum<keepdims=0>(x) }",
        "g (float[4] x) => (int64 y) { y = ArgMax<axis=0, keepdims=0>(x) }",
        "g (float[4] x) => (float y) { s = ReduceSum<keepdims=0>(x) y = Floor(s) }",
        "g (float[4] x) => (float y) { s = ReduceSum<keepdims=0>(x) r = Round(s) y = Mul(r, s) }",
        "g (float[4] x) => (float y) { i = ArgMax<axis=0, keepdims=0>(x) y = Gather<axis=0>(x, i) }",
        """g (float[4] x) => (float y) { s = ReduceSum<keepdims=0>(x) a = Constant<value_float=0.1>()
            z = Constant<value=uint8{3}>() q = QuantizeLinear(s, a, z) y = DequantizeLinear(q, a, z) }""",
        """g (float[1] x) => (float v, int64 i) { k = Constant<value=int64[1]{1}>() vs, is = TopK(x, k)
            v = Squeeze(vs) i = Squeeze(is) }""",
        "g (float[0,4] x) => (float y) { y = ReduceSum<keepdims=0>(x) }",
        "g (float[0,4] x) => (float[0,4] y) { y = Exp(x) }",
    ],
)
def test_every_check_takes_outputs_of_rank_0(text: str, tmp_path: Path) -> None:
    module = from_onnx(model_of(text))
    gate = Gate.for_module(module, random_inputs(module["main"]))
    right = list(gate.expected)
    wrong = [(array + np.array(3, array.dtype)).astype(array.dtype).reshape(array.shape) for array in right]
    write_gate(tmp_path, "gate", gate)
    for judge in (gate, read_gate(tmp_path, "gate")):
        assert judge.check(right).passed
        assert judge.check(wrong).passed == (right[0].size == 0)
