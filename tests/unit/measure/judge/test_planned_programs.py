"""Judges run a program as a whole, whatever devices it is planned on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from intarsia.ir import Call, Function, IRModule, Tuple, post_order
from intarsia.ir.parser import parse_module
from intarsia.measure.judge.judges import DEFINITION, NATIVE, UNOPTIMISED, Judge, JudgeSession
from intarsia.op import infer_types

PLANNED = """
def @main(%x: Tensor[(2,), float32] @device(cpu:0), %y: Tensor[(2,), float32] @device(cpu:1)) {
  %0 = Relu(%x) @device(cpu:0);
  %1 = Neg(%y) @device(cpu:1);
  %2 = intarsia::device_copy(%1) @device(cpu:0);
  Add(%0, %2) @device(cpu:0)
}
"""
INPUTS = {"x": np.array([-1.0, 2.0], np.float32), "y": np.array([3.0, 4.0], np.float32)}


def every_value() -> IRModule:
    """The planned program that returns each of its values, which are on different devices."""
    mod = infer_types(parse_module(PLANNED))
    main = mod["main"]
    values = Tuple(tuple(expr for expr in post_order(main) if isinstance(expr, Call)))
    return mod.with_function("main", replace(main, body=values, checked_type=None))


@pytest.mark.parametrize("judge", [DEFINITION, UNOPTIMISED, NATIVE], ids=lambda judge: judge.name)
def test_values_on_two_devices_are_computed(judge: Judge) -> None:
    module = every_value()
    assert isinstance(module["main"], Function)
    with JudgeSession(judge, module) as session:
        results = session.run(INPUTS)
    assert isinstance(results, tuple), results
    found = sorted(map(tuple, np.round(results, 3).tolist()))
    assert found == sorted([(0.0, 2.0), (-3.0, -4.0), (-3.0, -4.0), (-3.0, -2.0)])
