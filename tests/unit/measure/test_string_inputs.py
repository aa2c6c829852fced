"""Random strings are words that the program has tables of, and one that it has not."""

from __future__ import annotations

import numpy as np
import pytest
from tests.onnx_models import model_of

from intarsia.frontend.onnx import from_onnx
from intarsia.ir import Function
from intarsia.measure.inputs import random_inputs
from intarsia.measure.string_inputs import UNKNOWN_WORD, vocabularies


def main_of(text: str) -> Function:
    return from_onnx(model_of(text.replace("'", '"'), opset=21, imports='"ai.onnx.ml": 3'))["main"]


def test_each_input_gets_the_words_of_its_own_tables() -> None:
    main = main_of(
        "g (string[3,1] color, string[3] kind) => (float[3,1,2] a, int64[3] b) {"
        " same = Identity(color)"
        " a = ai.onnx.ml.OneHotEncoder <cats_strings = ['red', 'blue']> (same)"
        " b = ai.onnx.ml.LabelEncoder <keys_strings = ['u', 'v'], values_int64s = [3, 4]> (kind) }"
    )
    words = vocabularies(main)
    assert words["color"].words == ("red", "blue", UNKNOWN_WORD)
    assert words["kind"].words == ("u", "v", UNKNOWN_WORD)


def test_an_operator_that_fails_on_an_unknown_word_gets_none() -> None:
    main = main_of(
        "g (string[3,1] x) => (float[3,1,2] a) {"
        " a = ai.onnx.ml.OneHotEncoder <cats_strings = ['red', 'blue'], zeros = 0> (x) }"
    )
    assert vocabularies(main)["x"].words == ("red", "blue")


@pytest.mark.parametrize(("dtype", "count"), [(1, 5), (7, 4)])
def test_strings_that_are_cast_are_numbers(dtype: int, count: int) -> None:
    main = main_of(
        f"g (string[3] x) => ({'float' if dtype == 1 else 'int64'}[3] y) {{ y = Cast <to = {dtype}> (x) }}"
    )
    words = vocabularies(main)["x"].words
    assert len(words) == count
    assert all(float(word) == float(word) for word in words)


def test_text_is_several_words() -> None:
    main = main_of("g (string[2] x) => (string[2,k] y, int64[2] n) { y, n = StringSplit (x) }")
    drawn = random_inputs(main)["x"]
    assert [len(text.split()) for text in drawn] == [4, 4]


def test_strings_without_a_table_get_the_words_of_others() -> None:
    main = main_of(
        "g (string[2] x, string[2] y) => (string[2] z, bool[2] e) {"
        " z = Identity(x)  word = Constant <value_string = 'dog'> ()  e = Equal(y, word) }"
    )
    assert vocabularies(main)["x"].words == ("dog", UNKNOWN_WORD)


def test_seeds_decide() -> None:
    main = main_of("g (string[40] x) => (string[40] y) { y = Identity(x) }")
    first, again, other = (random_inputs(main, seed)["x"] for seed in (0, 0, 1))
    assert first.dtype == np.dtype(object)
    np.testing.assert_array_equal(first, again)
    assert list(first) != list(other)


def test_programs_without_strings_have_no_words() -> None:
    assert vocabularies(main_of("g (float[2] x) => (float[2] y) { y = Neg(x) }")) == {}
