"""Reshapes to a size that the input does not have, as exporters write that fix the sizes of an example."""

from __future__ import annotations

import numpy as np
import pytest
from tests.onnx_models import model_of

from intarsia import build, from_onnx
from intarsia.support.errors import CompileError

SHAPES = {
    "constant": "<int64[2] shape = {7, 4}> {",
    "computed": (
        "<int64[1] rows = {7}, int64[1] one = {1}, int64[1] two = {2}> {"
        " dims = Shape(x) columns = Slice(dims, one, two) shape = Concat <axis = 0> (rows, columns)"
    ),
}


@pytest.mark.parametrize("form", SHAPES)
@pytest.mark.parametrize("rows", [11, 3])
def test_a_reshape_to_another_number_of_elements_is_refused(form: str, rows: int) -> None:
    text = f"g (float[{rows},4] x) => (float[4] y) {SHAPES[form]} r = Reshape(x, shape) y = ReduceMax"
    model = from_onnx(model_of(f"{text} <axes = [0], keepdims = 0> (r) }}"))
    with pytest.raises(CompileError, match=rf"\({rows}, 4\) cannot be reshaped to \(7, 4\)"):
        build(model, "cpu -toolchain=native")


@pytest.mark.parametrize("form", SHAPES)
def test_a_reshape_that_keeps_the_number_is_compiled(form: str) -> None:
    text = f"g (float[7,4] x) => (float[4] y) {SHAPES[form]} r = Reshape(x, shape) y = ReduceMax"
    model = from_onnx(model_of(f"{text} <axes = [0], keepdims = 0> (r) }}"))
    x = np.random.default_rng(0).standard_normal((7, 4)).astype(np.float32)
    np.testing.assert_array_equal(build(model, "cpu -toolchain=native")(x), x.max(axis=0))
