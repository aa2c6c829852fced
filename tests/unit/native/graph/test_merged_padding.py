"""Paddings of merged dimensions compute what those of all dimensions compute."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.unit.native.graph.programs import constant, ints
from tests.unit.native.graph.run_plan import run_plan

from intarsia.ir import DType, Expr, Function, TensorType, Var
from intarsia.native.graph import plan_region
from intarsia.native.machine.isa import Isa
from intarsia.op import call

ISA = Isa.host()


def variable(*shape: int) -> Var:
    return Var("x", checked_type=TensorType(shape, DType.FLOAT32))


def kernel_shapes(x: Var, result: Expr) -> list[tuple[int, ...]]:
    """Return the shapes of the results of all kernels."""
    return [kernel.dag.outputs[0].shape for kernel in plan_region(Function((x,), result), ISA).kernels]


@pytest.mark.parametrize(
    ("shape", "pads", "merged"),
    [
        ((72, 4, 223, 2), (0, 0, 1, 0, 0, 0, 2, 0), [(288, 452)]),
        ((3, 5, 7), (0, 2, 0, 0, 0, 0), [(3, 49)]),
        ((3, 5, 7), (0, 2, 1, 0, 0, 0), [(3, 7, 8)]),
        ((3, 5, 7, 2), (1, 0, 1, 0, 0, 0, 0, 0), [(20, 16)]),
        ((3, 5, 7), (0, 0, 1, 0, 0, 0), [(15, 8)]),
    ],
)
def test_dimensions_behind_padded_ones_are_part_of_them(
    shape: tuple[int, ...], pads: tuple[int, ...], merged: list[tuple[int, ...]]
) -> None:
    x = variable(*shape)
    assert kernel_shapes(x, call("Pad", x, ints(*pads))) == merged


@pytest.mark.parametrize("mode", ["edge", "reflect", "wrap"])
def test_mirrored_elements_stay_apart(mode: str) -> None:
    x = variable(3, 5, 7)
    assert kernel_shapes(x, call("Pad", x, ints(0, 2, 0, 0, 0, 0), mode=mode)) == [(3, 7, 7)]


def test_a_row_that_is_added_keeps_the_dimensions() -> None:
    x = variable(3, 5, 7)
    padded = call("Pad", x, ints(0, 2, 0, 0, 0, 0))
    assert kernel_shapes(x, call("Add", padded, constant(np.ones(7))))[-1] == (3, 7, 7)


@settings(max_examples=examples(40, quick=4), deadline=None)
@given(data=st.data())
def test_results_are_those_of_all_dimensions(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=4)))
    borders = [
        data.draw(st.sampled_from([(0, 0), (0, 0), (1, 2), (3, 0), (-1, 2) if extent > 1 else (0, 1)]))
        for extent in shape
    ]
    axes = data.draw(st.permutations(range(len(shape)))) if data.draw(st.booleans()) else None
    order = range(len(shape)) if axes is None else axes
    pads = ints(*(borders[axis][0] for axis in order), *(borders[axis][1] for axis in order))
    value = data.draw(st.sampled_from([0.0, -2.5]))
    x = variable(*shape)
    args = (x, pads, constant(value)) if axes is None else (x, pads, constant(value), ints(*axes))
    result = call("Pad", *args)
    behind = data.draw(st.sampled_from(["", "Relu", "Neg"]))
    function = Function((x,), call(behind, result) if behind else result)
    array = np.arange(1, 1 + int(np.prod(shape)), dtype=np.float32).reshape(shape)
    (found,) = run_plan(plan_region(function, ISA), [array], ISA)
    cropped = array[tuple(slice(max(0, -begin), None) for begin, _ in borders)]
    widths = [(max(0, begin), end) for begin, end in borders]
    expected = np.pad(cropped, widths, constant_values=value)
    expected = np.maximum(expected, 0) if behind == "Relu" else -expected if behind == "Neg" else expected
    np.testing.assert_array_equal(found, expected)
