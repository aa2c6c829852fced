"""Slices of merged dimensions compute what those of all dimensions compute."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.unit.native.graph.programs import constant, ints
from tests.unit.native.graph.run_plan import run_plan

from intarsia.ir import DType, Expr, Function, TensorType, Var
from intarsia.native.graph import PlanOptions, plan_region
from intarsia.native.machine.isa import Isa
from intarsia.op import call

ISA = Isa.host()
APART = PlanOptions(in_place=False)


def variable(*shape: int) -> Var:
    return Var("x", checked_type=TensorType(shape, DType.FLOAT32))


def kernel_shapes(x: Var, result: Expr) -> list[tuple[int, ...]]:
    """Return the shapes of the results of all kernels."""
    return [kernel.dag.outputs[0].shape for kernel in plan_region(Function((x,), result), ISA, APART).kernels]


@pytest.mark.parametrize(
    ("shape", "starts", "ends", "axes", "merged"),
    [
        ((22, 7, 29, 2), [7], [29], [2], (154, 44)),
        ((22, 7, 29, 2), [-22], [100], [-2], (154, 44)),
        ((3, 5, 7), [2], [4], [1], (3, 14)),
        ((3, 5, 7), [1, 2], [3, 6], [0, 2], (10, 4)),
        ((3, 5, 7), [1, 1], [4, 6], [1, 2], (3, 3, 5)),
        ((2, 4, 9, 4), [1], [4], [1], (2, 108)),
    ],
)
def test_dimensions_behind_cut_ones_are_part_of_them(
    shape: tuple[int, ...], starts: list[int], ends: list[int], axes: list[int], merged: tuple[int, ...]
) -> None:
    x = variable(*shape)
    assert kernel_shapes(x, call("Slice", x, ints(*starts), ints(*ends), ints(*axes))) == [merged]


def test_one_constant_may_be_several_arguments() -> None:
    x, number = variable(2, 4, 9, 4), ints(1)
    cut = call("Slice", x, number, ints(4), number, number)
    assert kernel_shapes(x, cut) == [(2, 108)]
    array = np.arange(288, dtype=np.float32).reshape(2, 4, 9, 4)
    (result,) = run_plan(plan_region(Function((x,), cut), ISA, APART), [array], ISA)
    np.testing.assert_array_equal(result, array[:, 1:4])


def test_steps_keep_the_dimensions() -> None:
    x = variable(3, 8, 7)
    cut = call("Slice", x, ints(1), ints(8), ints(1), ints(2))
    assert kernel_shapes(x, cut) == [(3, 4, 7)]


@settings(max_examples=examples(40, quick=4), deadline=None)
@given(data=st.data())
def test_results_are_those_of_all_dimensions(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 7), min_size=1, max_size=4)))
    axes = data.draw(st.lists(st.integers(0, len(shape) - 1), min_size=1, unique=True))
    starts = [data.draw(st.integers(-shape[axis], shape[axis] - 1)) for axis in axes]
    ends = [
        data.draw(st.integers(start % shape[axis] + 1, 12)) for axis, start in zip(axes, starts, strict=True)
    ]
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    cut: Expr = call("Slice", var := variable(*shape), ints(*starts), ints(*ends), ints(*axes))
    places = [slice(None)] * len(shape)
    for axis, start, end in zip(axes, starts, ends, strict=True):
        places[axis] = slice(start % shape[axis], end)
    expected = x[tuple(places)]
    if data.draw(st.booleans()):
        cut, expected = call("Mul", cut, constant(np.float32(3))), expected * 3
    (result,) = run_plan(plan_region(Function((var,), cut), ISA, APART), [x], ISA)
    np.testing.assert_array_equal(result, expected)
