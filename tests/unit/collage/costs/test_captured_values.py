"""The values within a program are those that onnx's reference computes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tests.collage_programs import program

from intarsia.build import build
from intarsia.collage.costs.captured_values import CapturedValues
from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.collage.graph.node_kind import node_label
from intarsia.ir import Expr, Function, IRModule, Var, with_fields
from intarsia.measure.inputs import random_inputs
from intarsia.measure.measure_input import Workload
from intarsia.measure.testbed.local import LocalTestbed

X = np.array([-1.5, 2.0], np.float32)


@pytest.fixture
def testbed(shared_testbed: LocalTestbed) -> LocalTestbed:
    return shared_testbed


def captured(workload: Workload, testbed: LocalTestbed) -> Mapping[Expr, npt.NDArray[Any]]:
    """The values; each is compared with a program that returns it alone."""
    mod = workload.module
    main = mod["main"]
    values = CapturedValues.of(workload, DataflowGraph.of(main), testbed).arrays
    given = workload.special_inputs
    missing = {} if all(param.name in given for param in main.params) else random_inputs(main)
    inputs = {**missing, **given}
    for expr, found in values.items():
        alone = mod.with_function("main", Function(main.params, expr, main.attrs.updated(output_names=None)))
        (expected,) = build(alone).run_flat(*inputs.values())
        assert found.dtype == np.asarray(expected).dtype
        np.testing.assert_allclose(found, np.asarray(expected), rtol=1e-6)
    return values


def labels(values: Mapping[Expr, object]) -> list[str]:
    return sorted(node_label(expr) or type(expr).__name__ for expr in values)


@pytest.mark.slow
def test_every_tensor_outside_of_branches(testbed: LocalTestbed) -> None:
    mod = program(
        """
    def @main(%x: T, %f: Tensor[(), bool], %unused: T) {
      %0 = Relu(%x);
      %1 = if (%f) { Abs(%0) } else { let %v: T = Tanh(%x); Neg(%v) };
      %2 = Split(Add(%1, %x), num_outputs=2, outputs=2);
      (%2.0, @other(%1))
    }
    def @other(%y: T) { Exp(%y) }
    """
    )
    values = captured(Workload(mod, special_inputs={"x": X}), testbed)
    assert labels(values) == ["Add", "Var", "Var", "Var", "field", "if", "other"]
    by_name = {expr.name: array for expr, array in values.items() if isinstance(expr, Var)}
    assert set(by_name) == {"x", "f", "unused"}
    assert by_name["x"].tolist() == X.tolist()


def test_arrays_are_mapped_from_files(testbed: LocalTestbed) -> None:
    mod = program("def @main(%x: T) { Relu(Abs(%x)) }")
    for array in captured(Workload(mod), testbed).values():
        assert not array.flags.owndata


def test_a_known_result_of_the_program_is_not_mistaken(testbed: LocalTestbed) -> None:
    """A workload can come with its expected result, which is not that of all values."""
    mod = program("def @main(%x: T) { Relu(Abs(%x)) }")
    workload = Workload(mod, special_inputs={"x": X}, expected=(np.abs(X),), by_structure=True)
    values = captured(workload, testbed)
    assert labels(values) == ["Abs", "Relu", "Var"]


def test_values_belong_to_weights(testbed: LocalTestbed) -> None:
    """Programs of one structure whose weights differ have different values."""
    from intarsia.ir import Constant
    from intarsia.op import call

    for factor in (2.0, 3.0):
        (x,) = program("def @main(%x: T) { %x }")["main"].params
        body = call("Mul", x, Constant(np.full(2, factor, np.float32)))
        workload = Workload(
            IRModule.from_expr(Function((x,), body)), special_inputs={"x": X}, by_structure=True
        )
        assert captured(workload, testbed)[body].tolist() == (X * factor).tolist()


def test_shapes_known_by_their_inputs_only(testbed: LocalTestbed) -> None:
    mod = program("def @main(%x: Tensor[(n, 2), float32]) { Relu(Abs(%x)) }")
    values = captured(Workload(mod, special_inputs={"x": np.ones((3, 2), np.float32)}), testbed)
    assert {array.shape for array in values.values()} == {(3, 2)}


def test_attributes_of_main_do_not_matter(testbed: LocalTestbed) -> None:
    mod = program("def @main(%i: Tensor[(4,), int64]) { Relu(Cast(%i, to=1)) }")
    main = mod["main"]
    attrs = main.attrs.updated(output_names=("y",), input_ranges=(("i", 5, 6),))
    values = captured(Workload(mod.with_function("main", with_fields(main, attrs=attrs))), testbed)
    assert all((array == 5).all() for array in values.values())


def test_a_program_without_values_of_its_own(testbed: LocalTestbed) -> None:
    assert labels(captured(Workload(program("def @main(%x: T) { %x }")), testbed)) == ["Var"]
    assert labels(captured(Workload(program("def @main(%x: T) { (%x, %x) }")), testbed)) == ["Var"]
