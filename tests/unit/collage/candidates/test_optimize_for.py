"""Global rewrites that a toolchain would like to have done first."""

from __future__ import annotations

import numpy as np
import pytest
from tests.collage_programs import assert_program, program
from tests.faulty_toolchains import faulty_toolchains
from tests.tuning_passes import CostTable

from intarsia.collage.candidates.optimize_for import optimize_for, preamble
from intarsia.collage.tune_placement import TunePlacement
from intarsia.driver.baselines import baselines
from intarsia.ir import Call, Constant, DType, Expr, Function, IRModule, Op, TensorType, Var, post_order
from intarsia.measure.candidate_kind import instantiate
from intarsia.measure.measure_input import Workload
from intarsia.op import call
from intarsia.op.operator_predicate import holding_operator_predicate, operator_predicate
from intarsia.op.opset import ML_DOMAIN
from intarsia.passes import SimplifyInference
from intarsia.support.errors import UsageError
from intarsia.target import Target
from intarsia.transform import Sequential
from intarsia.transform.pipeline import holding_pipeline
from intarsia.tune import Trace, TuningContext
from intarsia.tune.target_options import marked_functions

MOD = program("def @main(%x: T) { Identity(Neg(%x)) }")
ONNXRUNTIME, OPENVINO = Target("cpu", "onnxruntime"), Target("cpu", "openvino")


def network(operator: str) -> IRModule:
    """A product in front of an operator that one engine cannot take."""
    x = Var("x", checked_type=TensorType((4, 8), DType.FLOAT32))
    value: Expr = call("MatMul", x, Constant(np.eye(8, dtype=np.float32)))
    if operator == "Swish":
        return IRModule.from_expr(Function((x,), call("Swish", value, alpha=1.5)))
    scaled = call("Scaler", value, domain=ML_DOMAIN, offset=(0.5,) * 8, scale=(2.0,) * 8)
    return IRModule.from_expr(Function((x,), scaled))


def refused(mod: IRModule, toolchain: str) -> list[str]:
    supports = operator_predicate(toolchain)
    calls = (expr for expr in post_order(mod["main"]) if isinstance(expr, Call))
    return [str(expr.op) for expr in calls if isinstance(expr.op, Op) and not supports(expr)]


def test_most_toolchains_have_no_wishes() -> None:
    assert preamble("native") is None
    assert optimize_for(MOD, "native") is MOD


def test_a_pipeline_of_that_name_is_the_preamble() -> None:
    with (
        holding_operator_predicate("acme", lambda _: True),
        holding_pipeline("optimize_for_acme", lambda: Sequential([SimplifyInference()])),
    ):
        assert_program(optimize_for(MOD, "acme"), "def @main(%x: T) { Neg(%x) }")


def test_unknown_toolchains() -> None:
    for search in (preamble, lambda name: optimize_for(MOD, name)):
        with pytest.raises(UsageError, match="unknown toolchain 'opnvino'"):
            search("opnvino")
    with holding_operator_predicate("acme", lambda _: True):
        assert optimize_for(MOD, "acme") is MOD
    with faulty_toolchains():  # registered in code, without a predicate by name
        assert optimize_for(MOD, "right") is MOD


@pytest.mark.parametrize(("toolchain", "operator"), [("onnxruntime", "Swish"), ("openvino", "Scaler")])
def test_engines_take_the_whole_after_their_preamble(toolchain: str, operator: str) -> None:
    mod = network(operator)
    assert len(refused(mod, toolchain)) == 1
    after = optimize_for(mod, toolchain)
    assert refused(after, toolchain) == []
    assert optimize_for(after, toolchain) is after
    assert optimize_for(MOD, toolchain) is MOD


def test_the_changed_model_is_a_baseline_of_its_toolchain_only() -> None:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("openvino")
    entrants = baselines(Workload(network("Swish")), (ONNXRUNTIME, OPENVINO))
    assert [entrant.name for entrant in entrants] == ["onnxruntime", "onnxruntime optimized", "openvino"]
    item = entrants[1].input
    built = instantiate(item.workload.module, item.target, item.candidate)
    (function,) = (marked.function for marked in marked_functions(built))
    operators = [str(expr.op) for expr in post_order(function) if isinstance(expr, Call)]
    assert operators == ["MatMul", "Mul", "Sigmoid", "Mul"]


def test_placement_applies_a_preamble_before_the_whole_is_given_away() -> None:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("openvino")

    def cost(mod: IRModule) -> float:
        (marked,) = marked_functions(mod)
        names = {str(expr.op) for expr in post_order(marked.function) if isinstance(expr, Call)}
        return 1.0 if marked.target == ONNXRUNTIME and "Swish" not in names else 2.0

    placing = TunePlacement(targets=("openvino", "onnxruntime"), covers=0)
    best = placing.tune(Trace(network("Swish")), TuningContext(CostTable(cost)))
    assert best.perf == 1.0
    assert best.steps[-1].decision == "onnxruntime"
    assert "DecomposeSwish" in [step.instruction.name for step in best.steps]
