"""The operator intarsia::token_attention."""

from __future__ import annotations

import numpy as np
import pytest
from tests.onnx_models import model_of, onnxruntime_outputs

from intarsia.ir import Call, Constant
from intarsia.op import call
from intarsia.op.evaluate import evaluate_call
from intarsia.op.opset import INTARSIA_DOMAIN
from intarsia.runtime.kernel import Array
from intarsia.support.errors import InvalidModelError


def arrays(*shapes: tuple[int, ...]) -> list[Array]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


def attention(*given: Array, replaces: int = 0) -> Call:
    constants = map(Constant, given)
    return call("token_attention", *constants, domain=INTARSIA_DOMAIN, replaces=replaces, scale=0.5)


def test_it_is_softmax_of_scores_times_values() -> None:
    given = arrays((1, 2, 7, 3), (1, 2, 7, 3), (1, 2, 7, 5), (1, 1, 1, 7))
    model = model_of(
        "g (float[1,2,7,3] q, float[1,2,7,3] k, float[1,2,7,5] v, float[1,1,1,7] b) => (float[1,2,7,5] y) "
        "<float h = {0.5}> { t = Transpose <perm = [0, 1, 3, 2]> (k) s0 = MatMul (q, t) s1 = Mul (s0, h) "
        "s = Add (s1, b) p = Softmax (s) y = MatMul (p, v) }"
    )
    (expected,) = onnxruntime_outputs(model, dict(zip("qkvb", given, strict=True)))
    result = evaluate_call(attention(*given))
    np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("replaces", [0, 1])
def test_later_keys_have_a_bias_of_theirs(replaces: int) -> None:
    q, k, v, bias, later = arrays((1, 2, 5, 3), (1, 2, 5, 3), (1, 2, 5, 4), (1, 2, 1, 5), (1, 1, 1, 1))
    scores = 0.5 * np.einsum("bhid,bhjd->bhij", q, k)
    biased = np.where(np.tri(5, dtype=bool), scores + bias, later if replaces else scores + later)
    powers = np.exp(biased)
    expected = powers / powers.sum(-1, keepdims=True) @ v
    result = evaluate_call(attention(q, k, v, bias, later, replaces=replaces))
    np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-5, atol=1e-6)


def test_other_arguments_are_refused() -> None:
    q, k, v = arrays((1, 2, 5, 3), (1, 2, 5, 3), (1, 2, 5, 4))
    with pytest.raises(InvalidModelError, match="has 2 arguments, expected 3 to 5"):
        attention(q, k)
    with pytest.raises(InvalidModelError, match="float32 tensors of four axes"):
        attention(q, k, v[0])
    with pytest.raises(InvalidModelError, match="float32 tensors of four axes"):
        attention(q, k, v.astype(np.float64))
    with pytest.raises(InvalidModelError, match="replaces=2"):
        attention(q, k, v, replaces=2)
