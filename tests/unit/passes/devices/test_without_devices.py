"""A program with nothing said about devices."""

from __future__ import annotations

import numpy as np
import pytest
from tests.device_scenarios import SCENARIOS, Scenario
from tests.ir_programs import var

from intarsia.ir import Call, Constant, Function, IRModule, Var, post_order
from intarsia.op import call, device_copy, infer_types, on_device
from intarsia.op.device_call import is_device_copy, placement_of
from intarsia.op.known_value import known_value
from intarsia.passes.devices.without_devices import without_devices
from intarsia.target import UNCONSTRAINED, DeviceType, VirtualDevice

DEVICE = VirtualDevice(DeviceType.CPU, 1)


@pytest.mark.quick_cases(12)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_nothing_of_a_planned_program_names_a_device(scenario: Scenario) -> None:
    planned = infer_types(scenario.planned())
    bare = without_devices(planned)
    for name, function in bare.graph_functions.items():
        for expr in post_order(function):
            assert expr.virtual_device == UNCONSTRAINED, name
            assert not is_device_copy(expr)
            assert placement_of(expr) is None
            assert not isinstance(expr, Call | Var) or expr.checked_type is not None
        assert function.result_type == planned[name.name].result_type


def test_a_program_without_devices_is_the_same_object() -> None:
    x = var()
    mod = infer_types(IRModule.from_expr(Function((x,), call("Relu", x))))
    assert without_devices(mod) is mod


def test_annotations_and_copies_become_their_values() -> None:
    x = var()
    value = on_device(call("Relu", device_copy(x, DEVICE)), DEVICE)
    main = without_devices(IRModule.from_expr(Function((x,), call("Neg", value))))["main"]
    assert [str(expr.op) for expr in post_order(main) if isinstance(expr, Call)] == ["Relu", "Neg"]


def test_shapes_that_were_known_stay_known() -> None:
    """A constant of integers on a device is another one without, and what is computed of it is a shape."""
    x = var()
    shape = Constant(np.array([2], np.int64), virtual_device=DEVICE)
    doubled = call("Add", shape, Constant(np.array([0], np.int64)))
    mod = infer_types(IRModule.from_expr(Function((x,), call("Reshape", x, doubled))))
    main = without_devices(mod)["main"]
    (known,) = [expr for expr in post_order(main) if isinstance(expr, Call) and str(expr.op) == "Add"]
    assert known_value(known) is not None
    assert main.body.checked_type == mod["main"].body.checked_type
