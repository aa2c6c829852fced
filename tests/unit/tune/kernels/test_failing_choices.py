"""A choice of one kernel that fails in worker processes costs the choices beside it nothing."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite

import numpy as np
import pytest
from tests.unit.tune.kernels import planted_choices
from tests.unit.tune.kernels.planted_choices import NAME, planted_choice

from intarsia.ir import Constant, DType, Expr, Function, IRModule, TensorType, Var
from intarsia.measure.measure_input import Workload
from intarsia.measure.measurer import Measurer
from intarsia.measure.testbed import LocalTestbed
from intarsia.op import call
from intarsia.target import Host, Target
from intarsia.tune import MeasuringEvaluator, Trace, TuningContext
from intarsia.tune.choice import Choice
from intarsia.tune.kernels import KernelQuestion, kernel_groups
from intarsia.tune.kernels.kernel_group import KernelGroup
from intarsia.tune.kernels.time_bundles import time_bundles
from intarsia.tune.strategy import Prefixes, SearchLimits
from intarsia.tune.transformations import holding_transformation
from intarsia.tune.tuning_pass import search_decisions

NATIVE = Target("cpu -toolchain=native -threads=2")

pytestmark = pytest.mark.processes


def program() -> IRModule:
    """Four products of different sizes, each a kernel."""
    x = Var("x", checked_type=TensorType((16, 24), DType.FLOAT32))
    generator = np.random.default_rng(0)
    found: Expr = x
    for rows, columns in ((24, 96), (96, 32), (32, 40), (40, 48)):
        weight = Constant(generator.standard_normal((rows, columns)).astype(np.float32))
        found = call("Relu", call("MatMul", found, weight))
    return IRModule.from_expr(Function((x,), found))


@pytest.fixture
def evaluator() -> Iterator[MeasuringEvaluator]:
    modules = (planted_choices.__name__,)
    with (
        holding_transformation(NAME, planted_choice),
        LocalTestbed.open(Host.detect(), workers=2, preload=modules) as testbed,
    ):
        yield MeasuringEvaluator(Workload(program()), NATIVE, Measurer(testbed), by_decisions=True)


def questions(groups: list[KernelGroup], bad: int, fault: str) -> list[KernelQuestion]:
    """One on the threads of each kernel; that of number `bad` has a choice with a fault."""
    asked = []
    for number, group in enumerate(groups):
        args = {"settings": {group.key: {"threads": "1"}}, "target": str(NATIVE)}
        is_bad = number == bad
        choice = Choice(NAME, {**args, "fault": fault}) if is_bad else Choice("decide_kernels", args)
        asked.append(KernelQuestion(f"threads of {group.label}", (group.key,), {"one": choice}))
    return asked


@pytest.mark.parametrize("fault", ["refused", "crash"])
def test_the_kernels_beside_it_are_timed(evaluator: MeasuringEvaluator, fault: str) -> None:
    mod = evaluator.workload.module
    groups = list(kernel_groups(mod, str(NATIVE)))
    asked = questions(groups, 2, fault)
    bundle = {question.name: (question, "one") for question in asked}
    keys = [group.key for group in groups]
    timed = time_bundles([bundle], Trace(mod), TuningContext(evaluator), evaluator, keys)
    assert timed is not None
    assert timed.failed == [f"{asked[2].name}: one"]
    times = {
        name: seconds for part, seconds in zip(timed.bundles, timed.seconds, strict=True) for name in part
    }
    assert set(times) == set(bundle)
    for question in asked:
        assert isfinite(times[question.name][question.groups[0]]) == (question is not asked[2])


def test_the_others_are_tried_together_where_its_results_are_wrong(evaluator: MeasuringEvaluator) -> None:
    mod = evaluator.workload.module
    asked = questions(list(kernel_groups(mod, str(NATIVE))), 0, "wrong")
    instructions = [question.instruction() for question in asked]
    ctx = TuningContext(evaluator)
    search_decisions(instructions, Trace(mod), ctx, (), Prefixes(), SearchLimits(), None)
    tried = {
        tuple(step.decision for step in child.trace.steps): child.trace.fate
        for child in ctx.node.children
        if child.trace is not None
    }
    assert "wrong answer" in tried["one", "one", "one", "one"]
    assert tried["as it is", "one", "one", "one"] == ""
