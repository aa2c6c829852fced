"""Programs in which functions are values, with random annotations: planned, they compute what they did."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.function_values import CHOICE, NESTED, TUPLES, program

from intarsia.build import build
from intarsia.ir import TensorType
from intarsia.op import verify
from intarsia.passes import PlanDevices
from intarsia.passes.devices.consistency import device_gaps
from intarsia.passes.devices.device_domains import DeviceConflictError
from intarsia.passes.devices.without_devices import without_devices

OPERATOR = re.compile(r"(?:Relu|Exp|Add|Sub|Mul|Neg)\([^()]*\)")
ANNOTATIONS = ("", "", " @device(cpu:0)", " @device(cpu:1)", " @device(mock:0)")


@pytest.mark.parametrize("text", [CHOICE, NESTED, TUPLES], ids=["choice", "nested", "tuples"])
@settings(max_examples=examples(20), deadline=None)
@given(st.data())
def test_annotated_operators(text: str, data: st.DataObject) -> None:
    annotated = OPERATOR.sub(lambda found: found[0] + data.draw(st.sampled_from(ANNOTATIONS)), text)
    mod = program(annotated)
    try:
        planned = PlanDevices()(mod)
    except DeviceConflictError:  # functions that one call may reach have one place for their results
        return
    verify(planned)
    assert list(device_gaps(planned)) == []
    assert PlanDevices()(planned) is planned
    x = np.array([1.0, -2.0], np.float32)
    types = [param.checked_type for param in mod["main"].params]
    flags = sum(isinstance(type_, TensorType) and type_.shape == () for type_ in types)
    with build(planned) as exe:
        for bits in range(2**flags):
            inputs = [*(np.array(bool(bits >> place & 1)) for place in range(flags)), x]
            np.testing.assert_array_equal(exe(*inputs), build(without_devices(mod))(*inputs))
