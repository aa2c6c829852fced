"""Scalars and short vectors stand in program text, and are read back byte by byte."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis.extra.numpy import array_shapes, arrays
from tests.ir_programs import assert_same_program, module, var

from intarsia.ir import Attrs, Call, Constant, Op
from intarsia.ir.constant_literal import LONGEST_LITERAL, literal_array, literal_text
from intarsia.ir.parser import parse_expr, parse_module
from intarsia.ir.printer import print_module
from intarsia.support.errors import ProgramTextError

DTYPES = ("float64", "float32", "float16", "int64", "int8", "uint64", "bool")


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (np.float32(0.1), "float32(0.1)"),
        (np.float64(1e30), "float64(1e+30)"),
        (np.array([1, -1]), "int64[1, -1]"),
        (np.array([], np.int64), "int64[]"),
        (np.array([True, False]), "bool[true, false]"),
        (np.array([np.inf, -0.0, np.nan], np.float16), "float16[inf, -0.0, nan]"),
        (np.uint64(2**64 - 1), "uint64(18446744073709551615)"),
    ],
)
def test_texts(array: npt.NDArray[np.generic], text: str) -> None:
    assert literal_text(np.asarray(array)) == text


@pytest.mark.parametrize(
    "array",
    [
        np.zeros(LONGEST_LITERAL + 1),
        np.zeros((1, 1)),
        np.array(["text"], object),
        np.array([1j]),
        np.array([0x7FC00001], np.uint32).view(np.float32),  # a NaN that nan does not stand for
    ],
)
def test_what_is_not_written_in_place(array: npt.NDArray[np.generic]) -> None:
    assert literal_text(array) is None


@given(st.sampled_from(DTYPES).flatmap(lambda kind: arrays(kind, array_shapes(max_dims=1, max_side=10))))
def test_every_array_comes_back(array: npt.NDArray[np.generic]) -> None:
    for kept in (array, array.reshape(-1)[0].reshape(())):
        text = literal_text(kept)
        if text is not None:
            read = literal_array(text)
            assert (read.dtype, read.shape, read.tobytes()) == (kept.dtype, kept.shape, kept.tobytes())


def test_arguments_and_attributes_of_a_program_are_read_back() -> None:
    x = var()
    long = Constant(np.arange(20))
    args = (x, Constant(np.array(0.5, np.float32)), long, Constant(np.array([1, -1])))
    mod = module(x, body=Call(Op("F"), args, Attrs({"value": Constant(np.array([True]))})))
    printed = print_module(mod)
    assert "F(%x, float32(0.5), meta[Constant][0], int64[1, -1], value=bool[true])" in printed.text
    assert printed.constants == (long.data,)
    assert_same_program(parse_module(printed.text, printed.constants), mod)


def test_one_text_is_one_object() -> None:
    expr = parse_expr("F(float32(0.5), float32(0.5), float32(1.5))")
    assert isinstance(expr, Call)
    assert expr.args[0] is expr.args[1] is not expr.args[2]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("F(int8(300))", "int8(300) is not a constant: 300 does not fit int8"),
        ("F(float32(1.2.3))", "float32(1.2.3) is not a constant: could not convert string"),
        ("F(bool(1))", "bool(1) is not a constant: 1 is neither true nor false"),
        ("F(int64(0.5))", "int64(0.5) is not a constant: invalid literal"),
    ],
)
def test_malformed_literals(text: str, problem: str) -> None:
    with pytest.raises(ProgramTextError) as caught:
        parse_expr(text)
    assert caught.value.problem.startswith(f"line 1, column 3: {problem}")
