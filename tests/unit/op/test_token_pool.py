"""The operator intarsia::token_pool."""

from __future__ import annotations

import numpy as np
import pytest
from tests.onnx_models import model_of, onnxruntime_outputs

from intarsia.ir import Call, Constant, DType, TensorType
from intarsia.op import call
from intarsia.op.evaluate import evaluate_call
from intarsia.op.opset import INTARSIA_DOMAIN
from intarsia.runtime.kernel import Array
from intarsia.support.errors import InvalidModelError

X = np.random.default_rng(0).standard_normal((2, 5, 3)).astype(np.float32)
SAME = {
    "sum": "y = ReduceSum <keepdims = K> (x, one)",
    "mean": "y = ReduceMean <keepdims = K> (x, one)",
    "max": "y = ReduceMax <keepdims = K> (x, one)",
    "min": "y = ReduceMin <keepdims = K> (x, one)",
    "first": "y = Gather <axis = 1> (x, zero)",
    "last": "y = Gather <axis = 1> (x, last)",
}


def pool(x: Array, axis: int, keepdims: int, mode: str) -> Call:
    return call("token_pool", Constant(x), domain=INTARSIA_DOMAIN, axis=axis, keepdims=keepdims, mode=mode)


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("mode", SAME)
def test_it_is_the_operator_of_onnx(mode: str, keepdims: int) -> None:
    shape = [1] if keepdims else []
    model = model_of(
        f"g (float[2, 5, 3] x) => (float y) {{ {SAME[mode].replace('K', str(keepdims))} }}",
        opset=18,
        one=np.array([1]),
        zero=np.full(shape, 0),
        last=np.full(shape, -1),
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    (expected,) = onnxruntime_outputs(model, {"x": X})
    expression = pool(X, 1, keepdims, mode)
    result = np.asarray(evaluate_call(expression))
    assert expression.checked_type == TensorType(result.shape, DType.FLOAT32)
    assert result.shape == np.shape(expected)
    np.testing.assert_allclose(result, expected, rtol=1e-6)


def test_integers_keep_their_type() -> None:
    result = np.asarray(evaluate_call(pool(np.ones((2, 3), np.int32), 1, 0, "sum")))
    assert result.dtype == np.int32


@pytest.mark.parametrize(
    ("axis", "keepdims", "mode", "why"),
    [
        (-1, 0, "sum", "axis=-1"),
        (3, 0, "sum", "axis=3"),
        (1, 2, "sum", "keepdims=2"),
        (1, 0, "prod", "mode='prod'"),
    ],
)
def test_other_attributes_are_refused(axis: int, keepdims: int, mode: str, why: str) -> None:
    with pytest.raises(InvalidModelError, match=why):
        pool(X, axis, keepdims, mode)
