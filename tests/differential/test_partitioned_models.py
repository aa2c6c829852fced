"""Models partitioned for each engine compute the same, by the numeric gate."""

from __future__ import annotations

import pytest
from tests.model_gates import model_gate

from intarsia.build import build
from intarsia.frontend.onnx import from_onnx
from intarsia.frontend.zoo import build_model, zoo
from intarsia.ir import Call, IRModule, Op, post_order
from intarsia.measure.inputs import random_inputs
from intarsia.measure.judge.gate import run_arrays
from intarsia.op import verify
from intarsia.op.operator_predicate import holding_operator_predicate, operator_predicate
from intarsia.passes import partition_for

ENGINES = ("onnxruntime", "openvino")
QUICK = ("mnist", "bert_tiny", "gpt2_tiny", "squeezenet")
MODELS = [pytest.param(item.name, marks=() if item.name in QUICK else pytest.mark.slow) for item in zoo()]


def regions(mod: IRModule) -> dict[str, int]:
    """How many functions each engine has."""
    given = [function.attrs.get("Compiler") for function in mod.graph_functions.values()]
    return {engine: given.count(engine) for engine in ENGINES}


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_a_whole_model_is_one_region_and_computes_the_same(name: str) -> None:
    mod = from_onnx(build_model(name, 0))
    inputs = random_inputs(mod["main"], 0)
    gate = model_gate(name, mod, inputs)
    for engine in ENGINES:
        after = partition_for(mod, engine)
        verify(after)
        assert regions(after)[engine] == 1
        with build(after) as executable:
            report = gate.check(run_arrays(executable, inputs))
        assert report.passed, f"{engine}: {report.message}"


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("name", [item for item in QUICK if item != "squeezenet"])
def test_two_engines_share_a_model(name: str) -> None:
    """One engine gets the matrix products and convolutions, the other what is left."""
    mod = from_onnx(build_model(name, 0))
    inputs = random_inputs(mod["main"], 0)
    gate = model_gate(name, mod, inputs)
    heavy = {"Conv", "MatMul", "Gemm"}
    with holding_operator_predicate(
        "onnxruntime", lambda found: isinstance(found.op, Op) and found.op.name in heavy
    ):
        after = partition_for(mod, *ENGINES)
    verify(after)
    assert min(regions(after).values()) >= 2
    left = [expr for expr in post_order(after["main"]) if isinstance(expr, Call) and isinstance(expr.op, Op)]
    assert left == []
    with build(after) as executable:
        report = gate.check(run_arrays(executable, inputs))
    assert report.passed, report.message


def test_the_predicates_support_what_the_models_use() -> None:
    for name in QUICK:
        mod = from_onnx(build_model(name, 0))
        calls = [
            expr for expr in post_order(mod["main"]) if isinstance(expr, Call) and isinstance(expr.op, Op)
        ]
        for engine in ENGINES:
            assert all(map(operator_predicate(engine), calls)), f"{engine} on {name}"
