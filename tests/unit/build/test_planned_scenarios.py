"""What planning makes of annotated programs, run on the devices that it says (reference C.5)."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.device_scenarios import SCENARIOS, Scenario
from tests.effort import examples
from tests.properties.annotated_graphs import DEVICES, AnnotatedGraph, annotated_graphs
from tests.properties.random_programs import CONDITION, SHAPE, programs

from intarsia.build import build
from intarsia.ir import (
    Call,
    Expr,
    Function,
    GlobalVar,
    IRModule,
    Op,
    PrimFunc,
    TensorType,
    post_order,
    rewrite,
    with_module_fields,
)
from intarsia.op import on_device
from intarsia.passes import PlanDevices
from intarsia.passes.devices.indivisible_functions import insides
from intarsia.passes.devices.without_devices import without_devices
from intarsia.runtime.kernel import Value
from intarsia.runtime.plan_check import plan_complaint
from intarsia.support.errors import UnsupportedModelError


def check(planned: IRModule, unplanned: IRModule, inputs: list[np.ndarray]) -> None:
    """On its devices the planned program computes what the other one does on none."""
    expected = build(without_devices(unplanned)).run_flat(*inputs)
    with build(planned) as exe:
        assert plan_complaint(exe.plan, len(exe.kernels), 99) == ""
        found: list[Value] = exe.run_flat(*inputs)
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_scenarios_run_on_mock_devices(scenario: Scenario) -> None:
    if scenario.name == "memory_scope":  # planned, but no device has that memory
        with pytest.raises(UnsupportedModelError, match="memory scope 'fast'"):
            build(scenario.planned())
        return
    for truth in (True, False):
        check(scenario.planned(), scenario.program(), list(scenario.inputs(truth).values()))


@settings(max_examples=examples(40), deadline=None)
@given(annotated_graphs(devices=3, steps=12))
def test_random_annotated_graphs_run_on_mock_devices(graph: AnnotatedGraph) -> None:
    if graph.is_contradictory:
        return
    count = len(graph.mod["main"].params)
    inputs = [np.full((2, 3), number + 1.5, np.float32) for number in range(count)]
    check(PlanDevices()(graph.mod), graph.mod, inputs)


@settings(max_examples=examples(60), deadline=None)
@given(programs(compilers=("reference",), annotated=False), st.randoms(use_true_random=False))
def test_programs_of_all_kinds_run_on_mock_devices(mod: IRModule, source: Random) -> None:
    """Branches, calls, tuples, lets, marked functions; results of some operators are given a device.

    Not those inside of marked functions: their targets say where they are.
    """
    compiled = set(post_order(*insides(*mod.graph_functions.values())))

    def scattered(expr: Expr) -> Expr:
        is_operator = isinstance(expr, Call) and isinstance(expr.op, Op) and expr not in compiled
        if not is_operator or source.random() < 0.5 or not isinstance(expr.checked_type, TensorType):
            return expr
        return on_device(expr, source.choice(DEVICES))

    functions: dict[GlobalVar, Function | PrimFunc] = {}
    for var, function in mod.graph_functions.items():
        changed = function if "Compiler" in function.attrs else rewrite(function, scattered)
        assert isinstance(changed, Function)
        functions[var] = changed
    annotated = with_module_fields(mod, functions=functions)
    planned = PlanDevices()(annotated)
    inputs = [
        np.array(number % 2 == 1) if param.checked_type == CONDITION else np.full(SHAPE, number, np.float32)
        for number, param in enumerate(mod["main"].params)
    ]
    check(planned, mod, inputs)
