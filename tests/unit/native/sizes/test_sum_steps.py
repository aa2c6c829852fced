"""Loops with several steps of a sum in an iteration compute what they computed before."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.properties.random_kernels import kernels
from tests.tir_checks import assert_same_bits, random_arrays, results

from intarsia.ir import DType, GlobalVar, IRModule, PrimFunc
from intarsia.ir.loop_walk import Event, walk
from intarsia.ir.prim_func import Arith, ArithOp, Buffer, For, ForKind, Literal, Load, LoopVar, Store
from intarsia.ir.verify import verify
from intarsia.native.sizes import with_steps

_LANES = 8


def product(rows: int, depth: int, columns: int) -> PrimFunc:
    """Return sums of products, with rows and columns inside of the loop over the sum."""
    j, k = LoopVar("j"), LoopVar("k")
    row = Literal(0, DType.INT64) if rows == 1 else LoopVar("i")
    shapes = {"x": (rows, depth), "w": (depth, columns), "y": (rows, columns)}
    x, w, y = (Buffer(name, shape, DType.FLOAT32) for name, shape in shapes.items())
    factor = Arith(ArithOp.MUL, (Load(x, (row, k)), Load(w, (k, j))))
    add = Store(y, (row, j), Arith(ArithOp.ADD, (Load(y, (row, j)), factor)))
    lanes = For(j, columns, add, ForKind.VECTORIZED)
    tile = For(row, rows, lanes, ForKind.UNROLLED) if isinstance(row, LoopVar) else lanes
    return PrimFunc((x, w, y), For(k, depth, tile))


def loops_of(function: PrimFunc) -> list[tuple[int, ForKind]]:
    return [
        (visit.statement.extent, visit.statement.kind)
        for visit in walk(function.body)
        if isinstance(visit.statement, For) and visit.event is Event.ENTER
    ]


@pytest.mark.parametrize(
    ("rows", "columns", "depth", "steps"),
    [
        (1, 24, 12, 4),
        (1, 64, 12, 4),
        (2, 32, 12, 4),
        (1, 24, 6, 2),  # no multiple of 4
        (1, 24, 5, 1),
        (5, 24, 12, 2),
        (4, 32, 12, 2),
        (6, 24, 12, 1),  # 18 vectors keep the units busy
        (1, 3, 12, 4),
    ],
)
def test_short_iterations_have_more_steps(rows: int, columns: int, depth: int, steps: int) -> None:
    before = product(rows, depth, columns)
    after = with_steps(before, _LANES)
    verify(IRModule({GlobalVar("f"): after}))
    if steps == 1:
        assert after == before
    else:
        assert loops_of(after)[:2] == [(depth // steps, ForKind.SERIAL), (steps, ForKind.UNROLLED)]
    arrays = random_arrays(before)
    assert_same_bits(
        results(after, [array.copy() for array in arrays]),
        results(before, [array.copy() for array in arrays]),
    )


@settings(max_examples=examples(50), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(kernels(), st.sampled_from([4, 8, 16]))
def test_programs_compute_what_they_computed(function: PrimFunc, lanes: int) -> None:
    after = with_steps(function, lanes)
    verify(IRModule({GlobalVar("f"): after}))
    arrays = random_arrays(function)
    expected = results(function, [array.copy() for array in arrays])
    assert_same_bits(results(after, [array.copy() for array in arrays]), expected)


def test_loops_with_a_number_at_run_time_stay() -> None:
    before = product(1, 12, 24)
    assert isinstance(before.body, For)
    count = Literal(7, DType.INT64)
    counted = replace(before, body=replace(before.body, count=count))
    assert with_steps(counted, _LANES) == counted
