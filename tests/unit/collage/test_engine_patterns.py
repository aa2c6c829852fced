"""Groups of operators that engines offer by pattern tables, beside what their predicates allow."""

from __future__ import annotations

import numpy as np
import pytest
from tests.mock_cost_estimator import MockCostEstimator

from intarsia.build import build
from intarsia.collage.candidates.candidate_partition import CandidatePartition
from intarsia.collage.candidates.cost import Cost
from intarsia.collage.collage import collage
from intarsia.collage.costs.cost_estimator import Estimate
from intarsia.collage.gather_specs import gather_partition_specs
from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.collage.search_by_measured_sums import mixed_placements
from intarsia.ir import Call, Constant, DType, Function, IRModule, TensorType, Var
from intarsia.op import call
from intarsia.op.infer import infer_types
from intarsia.op.operator_predicate import holding_operator_predicate
from intarsia.passes import PartitionWhole
from intarsia.target import Target

pytestmark = pytest.mark.quick_tests(5)

ENGINES = ("native", "onnxruntime", "openvino")


def transformer() -> IRModule:
    """Attention between projections, with the input of the block added behind it."""
    type_ = TensorType((2, 16, 8), DType.FLOAT32)
    x, mask = Var("x", checked_type=type_), Var("mask", checked_type=TensorType((16, 16), DType.FLOAT32))
    weights = [Constant(np.full((8, 8), value, np.float32)) for value in (0.1, 0.2, 0.3)]
    query, key, value = (call("MatMul", x, weight) for weight in weights)
    scores = call("MatMul", query, call("Transpose", key, perm=(0, 2, 1)))
    scaled = call("Mul", scores, Constant(np.array(0.35, np.float32)))
    weighted = call("MatMul", call("Softmax", call("Add", scaled, mask), axis=-1), value)
    return infer_types(IRModule.from_expr(Function((x, mask), call("Add", weighted, x))))


class AttentionIsCheap(MockCostEstimator):
    """Groups of attention cost next to nothing."""

    def _made(self, candidate: CandidatePartition, function: Function) -> Estimate:
        cheap = Estimate(Cost.value(1e-7), 1e-7, 1e-7)
        return cheap if "attention" in candidate.rule_name else super()._made(candidate, function)


@pytest.mark.parametrize("engine", ENGINES)
def test_engines_offer_attention_as_a_whole(engine: str) -> None:
    graph = DataflowGraph.of(transformer()["main"])
    (spec, *_) = gather_partition_specs([Target.for_toolchain(engine)])
    candidates = spec.rule.all_candidates(graph, spec)
    (group,) = (each for each in candidates if each.rule_name == f"{engine}.attention")
    calls = [graph[index].expr for index in group.sub_graph.inside]
    operators = sorted(str(expr.op) for expr in calls if isinstance(expr, Call))
    assert operators == ["Add", "MatMul", "MatMul", "Mul", "Softmax"]
    others = [each.sub_graph.inside for each in candidates if each is not group]
    assert group.sub_graph.inside not in others, "only the table has it"


def test_a_group_with_an_operator_that_the_engine_lacks_is_no_candidate() -> None:
    graph = DataflowGraph.of(transformer()["main"])
    with holding_operator_predicate("onnxruntime", lambda found: str(found.op) != "Softmax"):
        (spec, *_) = gather_partition_specs([Target.for_toolchain("onnxruntime")])
        names = [each.rule_name for each in spec.rule.all_candidates(graph, spec)]
    assert not any("attention" in name for name in names)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_search_takes_the_group_and_the_engine_runs_it(engine: str) -> None:
    other = "openvino" if engine == "onnxruntime" else "onnxruntime"
    pytest.importorskip("openvino")
    pytest.importorskip("onnxruntime")
    mod, generator = transformer(), np.random.default_rng(0)
    specs = gather_partition_specs([Target.for_toolchain(engine), Target.for_toolchain(other)])
    costs = AttentionIsCheap({engine: 1e-4, other: 9e-5, "reference": 1.0})
    best, *_ = mixed_placements(mod, collage(mod, specs, costs))
    composites = [group.name for partition in best.partitions for group in partition.composites]
    assert composites == [f"{engine}.attention"]
    arrays = [generator.normal(size=size).astype(np.float32) for size in ((2, 16, 8), (16, 16))]
    whole = build(PartitionWhole(f"cpu -toolchain={other}")(mod))
    (expected,), (found,) = whole.run_flat(*arrays), build(best.applied(mod)).run_flat(*arrays)
    np.testing.assert_allclose(np.array(found), np.array(expected), rtol=1e-4, atol=1e-5)
