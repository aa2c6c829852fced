"""Reductions along rows, of every length and over several axes."""

import numpy as np
import pytest
from tests.default_schedules import assert_matches_declared, run_scheduled
from tests.emitted_kernels import x86_sets

from intarsia.native import te
from intarsia.native.dag import ComputeDAG
from intarsia.native.machine.isa import Isa
from intarsia.native.schedule import default_state

SETS = x86_sets()


def total_over_two(rows: int, height: int, width: int) -> ComputeDAG:
    data = te.placeholder((rows, height, width), name="x")
    h, w = te.reduce_axis(height, "h"), te.reduce_axis(width, "w")
    total = te.compute((rows,), lambda i: te.sum(data[i, h, w], axis=(h, w)), name="total")
    return ComputeDAG((data, total))


@pytest.mark.parametrize("isa", SETS.values(), ids=SETS)
@pytest.mark.parametrize("size", [(5, 7, 7), (3, 14, 14), (2, 1, 9), (4, 9, 1), (2, 3, 3), (3, 12, 65)])
def test_axes_that_lie_in_a_row_are_one(size: tuple[int, int, int], isa: Isa) -> None:
    assert_matches_declared(total_over_two(*size), isa, threads=2, tolerance=1e-4)


def test_one_loop_over_both_axes() -> None:
    wide = Isa("x86_64", "x86-64-v4", ("avx", "avx2", "avx512f", "avx512vl", "fma", "sse2"))
    state = default_state(total_over_two(8, 14, 14), wide, 1)
    assert [loop.name for loop in state["total.rf"].iters] == ["i", "h_w__0", "h_w__1"]


def test_axes_apart_stay_apart() -> None:
    data = te.placeholder((6, 5, 40), name="x")
    a, b = te.reduce_axis(6, "a"), te.reduce_axis(40, "b")
    total = te.compute((5,), lambda i: te.sum(data[a, i, b], axis=(a, b)), name="total")
    assert_matches_declared(ComputeDAG((data, total)), Isa.host(), tolerance=1e-4)


@pytest.mark.quick_cases(4)
@pytest.mark.parametrize("isa", SETS.values(), ids=SETS)
@pytest.mark.parametrize("width", [9, 10, 15, 17, 31, 33, 49, 65, 197])
def test_rows_that_fill_no_vectors(width: int, isa: Isa) -> None:
    x = np.random.default_rng(width).standard_normal((7, width)).astype(np.float32)
    data = te.placeholder(x.shape, name="x")
    k = te.reduce_axis(width, "k")
    largest = te.compute((7,), lambda i: te.max(data[i, k], axis=k), name="largest")
    (found,) = run_scheduled(ComputeDAG((data, largest)), {"x": x}, isa)
    np.testing.assert_array_equal(found, x.max(1))
