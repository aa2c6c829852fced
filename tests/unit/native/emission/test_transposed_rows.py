"""Squares that are transposed in registers: right on every machine, and only where all is read anyway."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.emitted_kernels import compile_kernel, x86_sets
from tests.tir_checks import parsed

from intarsia.native.emission.builder import Builder, ModuleText
from intarsia.native.emission.emit import emit_llvm
from intarsia.native.emission.transposed_rows import transpose
from intarsia.native.machine.isa import Isa

AVX2 = Isa("x86_64", "x86-64-v3", ("avx", "avx2", "f16c", "fma", "sse2", "sse4.1"))
AVX512 = Isa("x86_64", "x86-64-v4", (*AVX2.features, "avx512f", "avx512bw", "avx512vl"))
SHUFFLE = re.compile(r"(%\w+) = shufflevector .*? (%\w+), .*? (%\w+), <\d+ x i32> <(.*)>")


@pytest.mark.parametrize("itemsize", [1, 2, 4])
@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_columns_of_a_square(lanes: int, itemsize: int) -> None:
    builder = Builder(ModuleText())
    rows = [f"%row{row}" for row in range(lanes)]
    columns = transpose(builder, rows, f"<{lanes} x i{8 * itemsize}>", itemsize)
    values = {name: [(number, lane) for lane in range(lanes)] for number, name in enumerate(rows)}
    for line in builder.text().splitlines():
        found = SHUFFLE.search(line)
        assert found is not None, line
        result, first, second, mask = found.groups()
        both = values[first] + values[second]
        values[result] = [both[int(number.split()[-1])] for number in mask.split(",")]
    assert len(values) == lanes + lanes * (lanes.bit_length() - 1)
    assert [values[name] for name in columns] == [
        [(row, lane) for row in range(lanes)] for lane in range(lanes)
    ]


def text_of(rows: int, columns: int, store: str = "y[i, j] = x[j, i];", dtype: str = "float32") -> str:
    return (
        f"def prim @f(x: Buffer[({columns}, {rows}), {dtype}], y: Buffer[({rows}, {columns}), {dtype}]) {{\n"
        f"  for unrolled i in {rows} {{ for vectorized j in {columns} {{ {store} }} }}\n}}"
    )


def shuffles(text: str) -> int:
    return emit_llvm(parsed(text), "k", AVX2).text.count("shufflevector <8 x")


def test_a_square_is_loaded_by_rows() -> None:
    text = emit_llvm(parsed(text_of(8, 8)), "k", AVX2).text
    assert text.count("load <8 x float>") == 8
    assert text.count("shufflevector") == 24
    assert "load float" not in text


@pytest.mark.parametrize("side", [4, 8, 16])
def test_a_square_of_bytes_is_interleaved(side: int) -> None:
    text = emit_llvm(parsed(text_of(side, side, dtype="uint8")), "k", AVX2).text
    assert text.count(f"load <{side} x i8>") == side
    assert text.count("shufflevector") == side * (side.bit_length() - 1)
    assert "load i8" not in text


def test_rows_of_an_incomplete_square_are_masked() -> None:
    """Five columns of eight exist, and six rows."""
    text = emit_llvm(parsed(text_of(5, 6, "y[i, j] = max(x[j, i], exp(x[j, i]));")), "k", AVX2).text
    assert text.count("@llvm.masked.load") == 6 + 1  # and the declaration
    assert "load float" not in text


@pytest.mark.parametrize(("columns", "loads"), [(2, 2), (3, 3)])
def test_few_columns_without_gaps_are_shuffled_out_of_whole_vectors(columns: int, loads: int) -> None:
    """As pools of windows as long as their strides read them."""
    text = emit_llvm(parsed(text_of(columns, 8)), "k", AVX512).text
    assert text.count("load <8 x float>") == loads
    assert text.count("shufflevector") == columns * loads
    assert "masked.load" not in text


def test_two_squares_of_a_cache_line() -> None:
    assert shuffles(text_of(16, 8)) == 48


@pytest.mark.parametrize(
    "text",
    [
        text_of(9, 8).replace("x[j, i]", "x[j, 8]"),  # one column
        text_of(8, 8, dtype="float64"),
        text_of(8, 8, "if (i < 5) { y[i, j] = x[j, i]; }"),  # the others may lie outside of the buffer
        text_of(8, 8, "for k in 2 { y[i, j] = x[j, i]; }"),
        text_of(8, 8).replace("unrolled i", "i"),
    ],
    ids=["one column", "wide elements", "guarded", "loop within lanes", "not unrolled"],
)
def test_other_reads_stay_as_they_are(text: str) -> None:
    assert shuffles(text) == 0


def test_loops_between_the_two_repeat_no_square() -> None:
    text = (
        "def prim @f(x: Buffer[(8, 8), float32], y: Buffer[(5, 8, 8), float32]) {\n"
        "  for unrolled i in 8 { for k in 5 { for vectorized j in 8 { y[k, i, j] = x[j, i]; } } }\n}"
    )
    assert shuffles(text) == 0


def test_what_is_overwritten_is_read_again() -> None:
    """A buffer that is transposed onto itself: later columns read what earlier ones have written."""
    text = (
        "def prim @f(x: Buffer[(8, 8), float32]) {\n"
        "  for unrolled i in 8 { for vectorized j in 8 { x[i, j] = x[j, i] + 1f32; } }\n}"
    )
    data = np.arange(64, dtype=np.float32).reshape(8, 8)
    expected = data.copy()
    for row in range(8):
        expected[row] = expected[:, row] + 1
    compile_kernel(parsed(text))([data])
    np.testing.assert_array_equal(data, expected)


@pytest.mark.parametrize("isa", x86_sets().values(), ids=x86_sets())
@settings(max_examples=examples(20, quick=3), deadline=None)
@given(
    rows=st.integers(1, 40),
    columns=st.integers(1, 40),
    dtype=st.sampled_from(["float32", "int32", "float64", "int8", "uint8", "float16"]),
    store=st.sampled_from(
        [
            "y[i, j] = x[j, i];",
            "y[i, j] = x[j, i] + x[j, i];",
            "if (i < 9) { y[i, j] = x[j, i]; }",
            "if (j < 9) { y[i, j] = x[j, i]; }",
        ]
    ),
)
def test_all_machines_copy_right(isa: Isa, rows: int, columns: int, dtype: str, store: str) -> None:
    x = np.random.default_rng(0).integers(-50, 50, (columns, rows)).astype(dtype)
    y: npt.NDArray[Any] = np.zeros((rows, columns), dtype)
    compile_kernel(parsed(text_of(rows, columns, store, dtype)), isa)([x, y])
    i, j = np.indices((rows, columns))
    expected: npt.NDArray[Any] = x.T + x.T if "+" in store else x.T
    expected = np.where(i < 9, expected, 0) if "i < 9" in store else expected
    expected = np.where(j < 9, expected, 0) if "j < 9" in store else expected
    np.testing.assert_array_equal(y, expected)
