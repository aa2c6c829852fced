"""Every model of the zoo runs wholly on native, on one thread and on two, and is right."""

from __future__ import annotations

import pytest
from tests.model_gates import model_gate

from intarsia.build import build
from intarsia.frontend.onnx import from_onnx
from intarsia.frontend.zoo import build_model, zoo
from intarsia.ir import Call, Op, post_order
from intarsia.measure.inputs import random_inputs
from intarsia.measure.judge.gate import run_arrays
from intarsia.op.operator_predicate import operator_predicate
from intarsia.passes import partition_whole
from intarsia.target import Target

MODELS = [pytest.param(item.name, marks=() if item.name == "mnist" else pytest.mark.slow) for item in zoo()]
THREADS = (1, 2)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_runs_wholly_on_native_kernels(name: str) -> None:
    mod = from_onnx(build_model(name, 0))
    is_native = operator_predicate("native")
    calls = [expr for expr in post_order(mod["main"]) if isinstance(expr, Call) and isinstance(expr.op, Op)]
    assert sorted({str(call.op) for call in calls if not is_native(call)}) == []
    inputs = random_inputs(mod["main"], 0)
    gate = model_gate(name, mod, inputs)
    for threads in THREADS:
        after = partition_whole(mod, Target(f"cpu -toolchain=native -threads={threads}"))
        marks = [function.attrs.get("Compiler") for function in after.graph_functions.values()]
        assert marks.count("native") == len(marks) - 1 == 1  # and main, which calls it
        with build(after) as executable:
            for _ in range(2):  # the second run finds in memory what the first one left there
                report = gate.check(run_arrays(executable, inputs))
                assert report.passed, f"{threads} threads: {report.message}"
