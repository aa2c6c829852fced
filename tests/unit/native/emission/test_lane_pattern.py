"""Reads at constant distances are shuffled out of whole vectors, and right on every machine."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.emitted_kernels import compile_kernel, x86_sets
from tests.tir_checks import parsed

from intarsia.native.emission.emit import emit_llvm
from intarsia.native.emission.lane_pattern import Window, windows_of
from intarsia.native.machine.isa import Isa
from intarsia.native.machine.named_cpus import named_cpu

AVX2 = named_cpu("haswell", 1)


def text_of(size: int, count: int, index: str, rows: int = 3, dtype: str = "float32") -> str:
    return (
        f"def prim @f(x: Buffer[({rows}, {size}), {dtype}], y: Buffer[({rows}, {count}), {dtype}]) {{\n"
        f"  for r in {rows} {{ for vectorized i in {count} {{ y[r, i] = x[r, {index}]; }} }}\n}}"
    )


def test_windows_are_as_few_as_possible() -> None:
    assert windows_of((0, 100, 200, 1, 101, 201, 2, 102), 8) == (Window(0, 3), Window(100, 3), Window(200, 2))
    assert windows_of((5, 5, 5, 12), 8) == (Window(5, 8),)
    assert windows_of((5, 13), 8) == (Window(5, 1), Window(13, 1))


@pytest.mark.parametrize(
    ("index", "windows"), [("i * 55 floordiv 83", 2), ("i mod 3 * 60 + i floordiv 3", 3), ("i floordiv 9", 1)]
)
def test_a_division_of_the_lane_is_a_shuffle(index: str, windows: int) -> None:
    text = emit_llvm(parsed(text_of(200, 8, index)), "k", AVX2).text
    assert "div" not in text
    assert "load float" not in text
    assert text.count("call <8 x float> @llvm.masked.load") + text.count("load <8 x float>") <= windows


@pytest.mark.parametrize("set_", ["haswell", "znver4"])
def test_halves_are_shuffled_and_not_converted(set_: str) -> None:
    """What is only moved is stored as it was read."""
    text = emit_llvm(parsed(text_of(200, 64, "i floordiv 2", dtype="float16")), "k", named_cpu(set_, 1)).text
    assert "div" not in text
    assert "load half" not in text
    assert "fptrunc" not in text


@pytest.mark.parametrize(("count", "divides"), [(960, False), (2560, False), (2568, True)])
def test_long_rows_are_unrolled_for_their_lanes(count: int, divides: bool) -> None:
    text = emit_llvm(parsed(text_of(count, count, "i * 639 floordiv 959")), "k", AVX2).text
    assert ("div" in text) is divides
    assert ("shufflevector <8 x float>" in text) is not divides


def test_lanes_that_are_far_apart_are_read_one_by_one() -> None:
    text = emit_llvm(parsed(text_of(200, 8, "i * i mod 101")), "k", AVX2).text
    assert "shufflevector <8 x float>" not in text


@pytest.mark.parametrize("isa", x86_sets().values(), ids=x86_sets())
@settings(max_examples=examples(40, quick=4), deadline=None)
@given(
    size=st.integers(1, 70),
    count=st.integers(1, 150) | st.integers(500, 700),
    factor=st.integers(0, 90),
    start=st.integers(0, 90),
    divisor=st.integers(1, 90),
    form=st.sampled_from(["quotient", "remainder", "both"]),
    dtype=st.sampled_from(["float32", "float16", "int32", "float64", "int16", "int8"]),
)
def test_all_machines_read_right(
    isa: Isa, size: int, count: int, factor: int, start: int, divisor: int, form: str, dtype: str
) -> None:
    above = f"(i * {factor} + {start})"
    parts = {
        "quotient": f"{above} floordiv {divisor}",
        "remainder": f"{above} mod {divisor}",
        "both": f"{above} mod {divisor} * 2 + {above} floordiv {divisor}",
    }
    index = f"min({parts[form]}, {size - 1})"
    x = np.random.default_rng(0).integers(-50, 50, (3, size)).astype(dtype)
    y = np.zeros((3, count), dtype)
    compile_kernel(parsed(text_of(size, count, index, dtype=dtype)), isa)([x, y])
    numbers = np.arange(count) * factor + start
    positions = {
        "quotient": numbers // divisor,
        "remainder": numbers % divisor,
        "both": numbers % divisor * 2 + numbers // divisor,
    }
    np.testing.assert_array_equal(y, x[:, np.minimum(positions[form], size - 1)])
