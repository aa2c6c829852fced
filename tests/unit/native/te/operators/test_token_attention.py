"""The rule for intarsia::token_attention, for a number of tokens that is known."""

from __future__ import annotations

import numpy as np
import pytest
from tests.unit.native.te.operators.checked_call import check, make_call

from intarsia.op.opset import INTARSIA_DOMAIN
from intarsia.op.token_attention_op import ANCHORS


@pytest.mark.parametrize("replaces", [0, 1])
@pytest.mark.parametrize("biases", [(), ((1, 1, 1, 5),), ((1, 2, 1, 5), (1, 1, 1, 1)), ((1, 1, 1, 1),)])
def test_every_form(biases: tuple[tuple[int, ...], ...], replaces: int) -> None:
    rng = np.random.default_rng(len(biases))
    shapes = ((1, 2, 5, 3), (1, 2, 5, 3), (1, 2, 5, 4), *biases)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    call = make_call(
        "token_attention",
        *arrays,
        domain=INTARSIA_DOMAIN,
        anchor="query",
        clears=0,
        replaces=replaces,
        scale=0.5,
    )
    check(call, length=8)


def test_keys_of_the_past_and_shared_heads() -> None:
    rng = np.random.default_rng(0)
    shapes = ((2, 4, 3, 5), (2, 2, 9, 5), (2, 2, 9, 6), (2, 1, 1, 9), (1, 1, 1, 1))
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    check(
        make_call(
            "token_attention",
            *arrays,
            domain=INTARSIA_DOMAIN,
            anchor="query",
            clears=0,
            replaces=1,
            scale=0.5,
        ),
        length=8,
    )


def test_new_tokens_are_behind_the_past() -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((2, 3, tokens, 5)).astype(np.float32) for tokens in (4, 2)]
    check(make_call("token_append", *arrays, domain=INTARSIA_DOMAIN), length=8)


@pytest.mark.parametrize("anchor", ANCHORS)
def test_tables_and_rows_without_a_key(anchor: str) -> None:
    rng = np.random.default_rng(3)
    shapes = ((1, 2, 3, 3), (1, 2, 5, 3), (1, 2, 5, 4), (1, 1, 1, 5), (1, 1, 1, 1), (2, 17))
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    arrays[3][..., :3], arrays[4][...] = -np.inf, -np.inf
    attrs = {"anchor": anchor, "clears": 1, "replaces": 1, "scale": 0.5}
    check(make_call("token_attention", *arrays, domain=INTARSIA_DOMAIN, **attrs), length=8)


def test_queries_of_each_text_begin_where_it_says() -> None:
    rng = np.random.default_rng(4)
    shapes = ((2, 2, 3, 3), (2, 1, 6, 3), (2, 1, 6, 4), (1, 1, 1, 1), (1, 1, 1, 1))
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    given = [*arrays, None, np.array([3, 1])]
    attrs = {"anchor": "query", "clears": 0, "replaces": 1, "scale": 0.5}
    check(make_call("token_attention", *given, domain=INTARSIA_DOMAIN, **attrs), length=8)
