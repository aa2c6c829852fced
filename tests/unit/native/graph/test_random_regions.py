"""Plans of random functions compute what the reference does."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.unit.native.graph.programs import SHAPE, straight_programs
from tests.unit.native.graph.run_plan import run_plan

from intarsia.build import build
from intarsia.ir import Function, IRModule
from intarsia.native.graph import plan_region
from intarsia.native.machine.isa import Isa
from intarsia.op import infer_types

ISA = Isa.host()


@given(straight_programs(), st.integers(0, 3))
@settings(max_examples=examples(30), deadline=None)
def test_a_plan_computes_what_the_reference_does(module: IRModule, seed: int) -> None:
    typed = infer_types(module)
    function = typed["main"]
    assert isinstance(function, Function)
    random = np.random.default_rng(seed)
    inputs = [random.standard_normal(SHAPE).astype(np.float32) for _ in function.params]
    plan = plan_region(function, ISA)
    found = run_plan(plan, inputs, ISA)
    expected = [np.asarray(value) for value in build(typed).run_flat(*inputs)]
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-4)
