"""Types of layers as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intarsia.support.errors import UsageError
from intarsia.tune.quantise.layer_types import ALL_INT8, LayerTypes

NUMBERS = st.frozensets(st.integers(0, 40), max_size=6)


@given(NUMBERS, NUMBERS)
def test_the_text_is_read_as_it_was_written(first: frozenset[int], second: frozenset[int]) -> None:
    types = LayerTypes(first, second - first)
    if types:
        assert LayerTypes.of_text(types.text) == types


def test_texts() -> None:
    assert LayerTypes.of_text("all") == ALL_INT8
    assert ALL_INT8.text == "all"
    assert LayerTypes(frozenset({4, 0}), frozenset({2, 1})).text == "0 4 bfloat16 1 2"
    assert LayerTypes.of_text("bfloat16 3") == LayerTypes(frozenset(), frozenset({3}))


@pytest.mark.parametrize(
    "text", ["", "some", "0 -1", "bfloat16", "0 bfloat16", "0 bfloat16 0", "1 float16 2"]
)
def test_texts_that_list_no_layers(text: str) -> None:
    with pytest.raises(UsageError, match=r'^layers has .*, expected "all" or numbers such as "0 3 4"'):
        LayerTypes.of_text(text)


@pytest.mark.parametrize(
    ("types", "text"),
    [
        (ALL_INT8, "int8"),
        (LayerTypes(frozenset({0, 3})), "int8 in 2 layers"),
        (LayerTypes(frozenset({0, 3}), frozenset({1})), "int8 in 2 layers, bfloat16 in 1"),
        (LayerTypes(frozenset(), frozenset({1})), "bfloat16 in 1 layers"),
        (LayerTypes(), "float32"),
    ],
)
def test_descriptions(types: LayerTypes, text: str) -> None:
    assert types.description == text
