"""Every choice on kernels, judged and timed in worker processes."""

from __future__ import annotations

from math import isfinite

import numpy as np
import pytest

from intarsia.ir import Constant, Expr, Function, IRModule, TensorType, Var
from intarsia.measure.measure_input import Workload
from intarsia.measure.measurer import Measurer
from intarsia.measure.testbed import LocalTestbed
from intarsia.op import call
from intarsia.target import Host, Target
from intarsia.tune import MeasuringEvaluator, Trace, TuningContext
from intarsia.tune.kernels import AS_IT_IS, kernel_groups
from intarsia.tune.passes import TuneChannelBlocks, TuneFusionBorders, TuneKernelThreads, TunePacking

NATIVE = Target("cpu -toolchain=native -threads=2")


def program() -> IRModule:
    """Convolutions in groups of four channels, which no block of eight fits, and a product of heads."""
    x = Var("x", checked_type=TensorType.of(np.zeros((1, 16, 16, 16), np.float32)))
    generator = np.random.default_rng(0)
    found: Expr = x
    for _ in range(2):
        weight = Constant(generator.standard_normal((16, 4, 3, 3)).astype(np.float32) / 6)
        found = call("Relu", call("Conv", found, weight, pads=(1, 1, 1, 1), group=4))
    turned = call("Transpose", found, perm=(0, 1, 3, 2))
    return IRModule.from_expr(Function((x,), call("Tanh", call("MatMul", found, turned))))


@pytest.mark.slow
def test_every_choice_is_right_and_kernels_have_times() -> None:
    mod = program()
    groups = kernel_groups(mod, str(NATIVE))
    questions = [
        question
        for tuned in (TuneChannelBlocks(), TunePacking(), TuneFusionBorders(), TuneKernelThreads())
        for question in tuned.questions(groups, str(NATIVE))
    ]
    traces = []
    for instruction in (question.instruction() for question in questions):
        for decision in instruction.decisions:
            traces.append(Trace(mod))
            traces[-1].add(instruction, decision)
    # By rule these groups are on plain tensors, or in whole blocks, by the machine.
    assert {"4", "one", "epilogue apart", "panels"} <= {trace.steps[0].decision for trace in traces}
    with LocalTestbed.open(Host.detect(), workers=2) as testbed:
        evaluator = MeasuringEvaluator(Workload(mod), NATIVE, Measurer(testbed), by_decisions=True)
        assert [result.fate for result in evaluator.evaluate(traces)] == [""] * len(traces)
        timed = evaluator.time_kernels([Trace(mod), traces[-1]], [group.key for group in groups])
        ctx = TuningContext(evaluator)
        tried = TuneChannelBlocks().instructions(Trace(mod), ctx)
    assert timed is not None
    assert all(seconds > 0 and isfinite(seconds) for costs in timed for seconds in costs)
    assert all(instruction.decisions[0] == AS_IT_IS for instruction in tried)
