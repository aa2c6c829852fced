"""What follows a convolution is done to its results while they are in registers."""

from __future__ import annotations

import numpy as np
import pytest
from tests.unit.native.graph.programs import constant

from intarsia.ir import Function, GlobalVar, IRModule, TensorType, Var
from intarsia.native.graph import plan_region
from intarsia.native.loop_state import ComputeAt
from intarsia.native.machine.isa import Isa
from intarsia.native.schedule.default_schedule import default_state
from intarsia.native.te import ComputeOp
from intarsia.op import call


@pytest.mark.parametrize("batch", [1, 2])
def test_bias_residual_and_activation_have_no_loops_of_their_own(batch: int) -> None:
    isa = Isa.host()
    x = Var("x", checked_type=TensorType.of(np.zeros((batch, 32, 12, 12), np.float32)))
    weight, bias = constant(np.ones((32, 32, 1, 1))), constant(np.ones(32))
    result = call("Relu", call("Add", call("Conv", x, weight, bias), x))
    function = IRModule({GlobalVar("main"): Function((x,), result)})["main"]
    assert isinstance(function, Function)
    (kernel,) = (each for each in plan_region(function, isa).kernels if "conv" in each.name)
    state = default_state(kernel.dag, isa, 1)
    roots = [stage.op for stage in state.stages if stage.compute_at is ComputeAt.ROOT]
    assert [op for op in roots if isinstance(op, ComputeOp)] == [kernel.dag.outputs[0].op]
