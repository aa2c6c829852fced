"""Phases of kernels, and what their iterations touch, against all elements one by one."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.tir_checks import parsed

from intarsia.native.cores.phases import phases_of, shared_buffers
from intarsia.native.cores.touched_lines import TouchedLines, lines_of_box


def test_parallel_loops_and_what_is_between_them_are_phases() -> None:
    function = parsed("""def prim @f(x: Buffer[(8, 16), float32], y: Buffer[(8, 16), float32]) {
      alloc t: Buffer[(8, 16), float32] {
        for parallel i in 8 { alloc u: Buffer[(16,), float32] {
          for j in 16 { u[j] = x[i, j]; }
          for j in 16 { t[i, j] = u[j]; }
        } }
        t[0, 0] = 0.0f32;
        for k in 3 { for parallel i in 4 { y[i, k] = t[i, k] + y[i, k]; } }
      }
    }""")
    first, alone, again = phases_of(function)
    assert [buffer.name for buffer in shared_buffers(function)] == ["t"]
    assert (first.extent, first.repeats) == (8, 1)
    assert {(access.buffer.name, access.is_store) for access in first.accesses} == {("x", False), ("t", True)}
    assert alone.loop is None
    assert (again.extent, again.repeats) == (4, 3)
    # Stores of 16 elements, twice: indices and value are scalars; the loop itself evaluates none.
    assert first.work == 8 * 16 * ((1 + 3) + (2 + 2))
    assert alone.work == 3
    assert again.work == 3 * 4 * (2 + 1 + 3 + 3)


def test_lines_of_iterations() -> None:
    function = parsed("""def prim @f(x: Buffer[(4, 8, 16), float32], y: Buffer[(8, 4, 16), float32]) {
      for parallel i in 8 { for j in 4 { for k in 16 { y[i, j, k] = x[j, i, k]; } } }
    }""")
    (phase,) = phases_of(function)
    touched = TouchedLines(phase, {"x", "y"}, 64)
    lines = {item.name: item.lines.tolist() for item in touched.of(2, 4)}
    assert lines == {"x": [2, 3, 10, 11, 18, 19, 26, 27], "y": list(range(8, 16))}
    assert [item.name for item in TouchedLines(phase, {"y"}, 64).of(0, 8)] == ["y"]


def test_a_fused_counter_touches_what_each_iteration_touches() -> None:
    function = parsed("""def prim @f(x: Buffer[(4, 6, 16), float32], y: Buffer[(24, 16), float32]) {
      for parallel i in 24 { for k in 16 { y[i, k] = x[i floordiv 6, i mod 6, k]; } }
    }""")
    (phase,) = phases_of(function)
    read = {item.name: item.lines.tolist() for item in TouchedLines(phase, {"x", "y"}, 64).of(4, 9)}
    assert read == {"x": [4, 5, 6, 7, 8], "y": [4, 5, 6, 7, 8]}


def test_windows_end_at_the_borders_of_a_buffer() -> None:
    function = parsed("""def prim @f(x: Buffer[(8, 16), float32], y: Buffer[(8, 16), float32]) {
      for parallel i in 8 { for r in 3 { if 1 <= i + r and i + r < 9 { for k in 16 {
        y[i, k] = y[i, k] + x[i + r - 1, k];
      } } } }
    }""")
    (phase,) = phases_of(function)
    touched = TouchedLines(phase, {"x"}, 64)
    windows = [[line for item in touched.of(i, i + 1) for line in item.lines.tolist()] for i in (0, 3, 7)]
    assert windows == [[0, 1], [2, 3, 4], [6, 7]]


@st.composite
def boxes(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[tuple[int, int], ...]]:
    shape = tuple(draw(st.lists(st.integers(1, 7), max_size=4)))
    box = []
    for extent in shape:
        low = draw(st.integers(0, extent - 1))
        box.append((low, draw(st.integers(low, extent - 1))))
    return shape, tuple(box)


@given(boxes(), st.sampled_from([1, 4, 8]), st.sampled_from([16, 64]))
def test_lines_of_a_box_are_those_of_its_elements(
    drawn: tuple[tuple[int, ...], tuple[tuple[int, int], ...]], item: int, line: int
) -> None:
    shape, box = drawn
    offsets = np.arange(int(np.prod(shape))).reshape(shape)
    elements = product(*(range(low, high + 1) for low, high in box))
    expected = {
        byte // line
        for element in elements
        for byte in range(offsets[element] * item, (offsets[element] + 1) * item)
    }
    assert lines_of_box(box, shape, item, line).tolist() == sorted(expected)
