"""The operator intarsia::token_attention."""

from __future__ import annotations

import numpy as np
import pytest
from tests.onnx_models import model_of, onnxruntime_outputs

from intarsia.ir import Call, Constant
from intarsia.op import call
from intarsia.op.call import absent
from intarsia.op.evaluate import evaluate_call
from intarsia.op.opset import INTARSIA_DOMAIN
from intarsia.op.token_attention_op import ANCHORS
from intarsia.runtime.kernel import Array
from intarsia.support.errors import InvalidModelError


def arrays(*shapes: tuple[int, ...]) -> list[Array]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


def attention(*given: Array | None, anchor: str = "query", clears: int = 0, replaces: int = 0) -> Call:
    constants = (absent() if item is None else Constant(item) for item in given)
    return call(
        "token_attention",
        *constants,
        domain=INTARSIA_DOMAIN,
        anchor=anchor,
        clears=clears,
        replaces=replaces,
        scale=0.5,
    )


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


def test_heads_share_keys_of_the_past_and_of_all_tokens() -> None:
    q, k, v = arrays((2, 4, 3, 5), (2, 2, 9, 5), (2, 2, 9, 6))
    later = np.full((1, 1, 1, 1), -np.inf, np.float32)
    none = np.zeros((1, 1, 1, 1), np.float32)
    result = np.asarray(evaluate_call(attention(q, k, v, none, later, replaces=1)))
    assert result.shape == (2, 4, 3, 6)
    for token in range(3):
        seen = 9 - 3 + token + 1
        keys, values = (np.repeat(item[:, :, :seen], 2, 1) for item in (k, v))
        powers = np.exp(0.5 * np.einsum("bhe,bhje->bhj", q[:, :, token], keys))
        expected = np.einsum("bhj,bhjc->bhc", powers / powers.sum(-1, keepdims=True), values)
        np.testing.assert_allclose(result[:, :, token], expected, rtol=1e-5, atol=1e-6)


def test_other_arguments_are_refused() -> None:
    q, k, v = arrays((1, 2, 5, 3), (1, 2, 5, 3), (1, 2, 5, 4))
    with pytest.raises(InvalidModelError, match="has 2 arguments, expected 3 to 7"):
        attention(q, k)
    with pytest.raises(InvalidModelError, match="is a float32 tensor of rank 4"):
        attention(q, k, v[0])
    with pytest.raises(InvalidModelError, match="is a float32 tensor of rank 4"):
        attention(q, k, v.astype(np.float64))
    with pytest.raises(InvalidModelError, match="replaces=2"):
        attention(q, k, v, replaces=2)


def test_rows_without_a_visible_key_are_0_or_nan() -> None:
    q, k, v = arrays((1, 1, 2, 3), (1, 1, 2, 3), (1, 1, 2, 4))
    hidden = np.array([-np.inf, 0], np.float32).reshape(1, 1, 1, 2)
    none = np.full((1, 1, 1, 1), -np.inf, np.float32)
    cleared, other = (np.asarray(evaluate_call(attention(q, k, v, hidden, none, clears=n))) for n in (1, 0))
    assert not cleared[0, 0, 0].any()
    assert np.isnan(other[0, 0, 0]).all()
    np.testing.assert_allclose(cleared[0, 0, 1], v[0, 0, 1])
    np.testing.assert_allclose(other[0, 0, 1], v[0, 0, 1])


@pytest.mark.parametrize("anchor", ANCHORS)
def test_a_table_by_positions_of_keys(anchor: str) -> None:
    q, k, v, table = arrays((1, 2, 3, 3), (1, 2, 5, 3), (1, 2, 5, 4), (2, 17))
    queries, keys = np.arange(3)[:, None] + 2, np.arange(5)
    columns = {"first": keys, "last": keys + 12, "query": keys - queries + 8}[anchor]
    bias = table[:, np.broadcast_to(columns, (3, 5))][None]
    scores = 0.5 * np.einsum("bhie,bhje->bhij", q, k) + bias
    powers = np.exp(scores)
    expected = powers / powers.sum(-1, keepdims=True) @ v
    result = evaluate_call(attention(q, k, v, None, None, table, anchor=anchor))
    np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-5, atol=1e-6)


def test_queries_of_each_text_begin_where_it_says() -> None:
    q, k, v = arrays((2, 1, 2, 3), (2, 1, 5, 3), (2, 1, 5, 4))
    later, none = np.full((1, 1, 1, 1), -np.inf, np.float32), np.zeros((1, 1, 1, 1), np.float32)
    starts = np.array([1, 3])
    result = np.asarray(evaluate_call(attention(q, k, v, none, later, None, starts, replaces=1)))
    for text, query in np.ndindex(2, 2):
        seen = starts[text] + query + 1
        powers = np.exp(0.5 * k[text, 0, :seen] @ q[text, 0, query])
        expected = powers / powers.sum() @ v[text, 0, :seen]
        np.testing.assert_allclose(result[text, 0, query], expected, rtol=1e-5, atol=1e-6)
