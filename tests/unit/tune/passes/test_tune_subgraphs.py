"""Equal parts are tuned once, and the decisions applied everywhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path

import numpy as np
import pytest
from tests.layered_programs import convolutions, layers
from tests.replayed_traces import replayed_digest
from tests.tuning_passes import CostTable

from intarsia.frontend.onnx.importer import from_onnx
from intarsia.frontend.zoo import build_model
from intarsia.ir import DType, Function, IRModule, TensorType, Var, structural_digest, structural_equal
from intarsia.measure.database import Database
from intarsia.measure.measure_input import Workload
from intarsia.measure.measurer import Measurer
from intarsia.measure.testbed.limits import TestbedLimits
from intarsia.measure.testbed.local import LocalTestbed
from intarsia.measure.timing.timing import TimingPolicy
from intarsia.op import call
from intarsia.passes import FoldConstant, InferType
from intarsia.support.errors import UsageError
from intarsia.target import Host, Target
from intarsia.transform import Sequential
from intarsia.tune import Evaluation, MeasuringEvaluator, Trace, TuningContext
from intarsia.tune.evaluation_log import LoggingEvaluator, ReplayEvaluator
from intarsia.tune.passes import TuneCombineParallel, TuneLayout, TuneRewrite, TuneSubgraphs
from intarsia.tune.run_control import RunControl

POLICY = TimingPolicy(warmup_seconds=0, warmup_calls=1, repeats=3, min_repeats=3, min_repeat_seconds=0)
LAYOUT = TuneSubgraphs(passes=(TuneLayout(),))


def gemm(mod: IRModule) -> float:
    """Each Gemm saves something."""
    return 1000.0 - str(mod).count("Gemm(")


def transposed(mod: IRModule) -> float:
    """Each conversion of a layout saves something."""
    return 1000.0 - 10 * str(mod).count("Transpose(")


def test_a_part_costs_as_many_evaluations_as_its_passes_and_the_whole_two() -> None:
    ctx = TuningContext(CostTable(transposed))
    best = LAYOUT.tune(Trace(convolutions(5)), ctx)
    assert ctx.num_evals == 3 + 2
    assert [step.decision for step in best.steps] == ["tuned"]
    assert best.perf == transposed(best.out_mod) < transposed(convolutions(5))


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("count", [3, 12])
def test_rewriting_takes_no_more_evaluations_for_more_layers(count: int) -> None:
    passes = (TuneRewrite(rules=("product_as_gemm",)),)
    ctx = TuningContext(CostTable(gemm))
    best = TuneSubgraphs(passes=passes).tune(Trace(layers(count)), ctx)
    assert str(best.out_mod).count("Gemm(") == 2 * count
    assert ctx.num_evals == 1 + 2 + 1 + 2  # a part as it is, with either Gemm, with both; the whole
    whole = TuningContext(CostTable(gemm))
    TuneRewrite(rules=("product_as_gemm",), max_expansions=20)(layers(count), whole)
    assert whole.num_evals > 3 * ctx.num_evals


@pytest.mark.parametrize("loss", [0.0, 1.0], ids=["tie", "loss"])
def test_what_does_not_pay_for_the_whole_is_not_done(loss: float) -> None:
    def cost(mod: IRModule) -> float:
        is_part = str(mod).count("Conv(") == 1
        return transposed(mod) if is_part else 50.0 + loss * str(mod).count("Transpose(")

    mod, ctx = convolutions(5), TuningContext(CostTable(cost))
    best = LAYOUT.tune(Trace(mod), ctx)
    assert ctx.num_evals == 3 + 2
    assert best.out_mod is mod


def test_parts_that_cannot_be_run_alone_are_left_alone() -> None:
    x = Var("x", checked_type=TensorType((2, 3), DType.INT32))
    value = call("Abs", x)
    for _ in range(4):
        value = call("Add", value, call("Abs", call("Neg", value)))
    mod = InferType()(IRModule.from_expr(Function((x,), value)))
    ctx = TuningContext(CostTable())
    assert TuneSubgraphs(passes=(TuneRewrite(),))(mod, ctx) is mod
    assert ctx.num_evals == 1


def test_heuristic_passes_alone_add_no_evaluations_of_parts() -> None:
    ctx = TuningContext(CostTable())
    TuneSubgraphs(passes=(FoldConstant(),))(layers(3), ctx)
    assert ctx.num_evals == 1


def test_passes_and_sequences_of_them_mix() -> None:
    ctx = TuningContext(CostTable(transposed))
    passes = (Sequential([FoldConstant(), TuneLayout()]), TuneCombineParallel())
    best = TuneSubgraphs(passes=passes).tune(Trace(convolutions(4)), ctx)
    assert ctx.num_evals == 3 + 9 + 2
    assert structural_equal(Trace.from_json(best.to_json(), convolutions(4)).out_mod, best.out_mod)


def test_the_parts_stand_in_the_tree() -> None:
    ctx = TuningContext(CostTable(transposed))
    LAYOUT(convolutions(5), ctx)
    assert "5 parts of 3 operators" in str(ctx.node)
    assert "tuned: " in str(ctx.node)


@pytest.mark.parametrize(
    ("options", "message"),
    [({}, "nothing to tune parts with"), ({"passes": (TuneLayout(),), "least_operators": 0}, "expected 1")],
    ids=["no passes", "empty parts"],
)
def test_useless_options_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        TuneSubgraphs(**options)  # type: ignore[arg-type]


@pytest.mark.slow
def test_the_decision_replays_in_a_new_process() -> None:
    passes = (TuneRewrite(rules=("product_as_gemm",)), TuneCombineParallel())
    best = TuneSubgraphs(passes=passes).tune(Trace(layers(4)), TuningContext(CostTable(gemm)))
    assert best.size == 1
    assert replayed_digest(best, "tests.layered_programs", "layers", 4) == structural_digest(best.out_mod)


def test_a_recorded_run_is_repeated_without_asking(tmp_path: Path) -> None:
    logging = LoggingEvaluator(CostTable(transposed), tmp_path / "log")
    first = LAYOUT.tune(Trace(convolutions(5)), TuningContext(logging))
    second = LAYOUT.tune(Trace(convolutions(5)), TuningContext(ReplayEvaluator(tmp_path / "log")))
    assert second.to_json() == first.to_json()


@dataclass
class WithParts(CostTable):
    """Has judges of its own for parts."""

    parts: dict[str, CostTable] = field(default_factory=dict)

    def for_part(self, mod: IRModule) -> CostTable:
        return self.parts.setdefault(structural_digest(mod), CostTable(self.cost))

    def evaluate(self, candidates: Sequence[Trace]) -> list[Evaluation]:
        assert all(len(str(each.out_mod)) > 1000 for each in candidates)
        return super().evaluate(candidates)


def test_parts_have_judges_of_their_own(tmp_path: Path) -> None:
    judge = WithParts(transposed)
    LAYOUT(convolutions(5), TuningContext(LoggingEvaluator(judge, tmp_path / "log")))
    assert [len(each.measured) for each in judge.parts.values()] == [2]  # as it is is NCHW
    assert len(judge.measured) == 2


@pytest.fixture(scope="module")
def testbed() -> Iterator[LocalTestbed]:
    with LocalTestbed.open(Host.detect(), workers=2, limits=TestbedLimits(policy=POLICY)) as opened:
        yield opened


def measuring(
    testbed: LocalTestbed,
    mod: IRModule,
    database: Database | None = None,
    trials: float = inf,
) -> MeasuringEvaluator:
    target = Target("cpu -toolchain=onnxruntime -threads=1")
    measurer = Measurer(testbed, database)
    control = RunControl(trials=trials, meter=measurer)
    return MeasuringEvaluator(Workload(mod), target, measurer, control=control)


@pytest.mark.slow
def test_a_transformer_of_the_zoo_is_measured_by_its_layer(testbed: LocalTestbed, tmp_path: Path) -> None:
    mod = from_onnx(build_model("bert_tiny"))
    tuner = TuneSubgraphs(passes=(TuneCombineParallel(), TuneRewrite(max_expansions=1, width=3)))
    with Database.open(tmp_path / "kept.db") as database:
        first, again = (TuningContext(measuring(testbed, mod, database)) for _ in range(2))
        best, other = (tuner.tune(Trace(mod), ctx) for ctx in (first, again))
    assert first.counts.measured > 4
    assert again.counts.measured == 0
    assert best.to_json() == other.to_json()
    assert best.perf is not None
    assert np.isfinite(best.perf)


@pytest.mark.slow
def test_parts_are_paid_for_by_the_budget_of_the_whole(testbed: LocalTestbed) -> None:
    mod = convolutions(3)
    judge = measuring(testbed, mod, trials=2)
    best = LAYOUT.tune(Trace(mod), TuningContext(judge))
    assert best.perf == inf  # two layouts of a part are measured, and the whole is not
    assert "budget" in best.fate


@pytest.mark.slow
def test_equal_parts_share_measurements(testbed: LocalTestbed) -> None:
    judge = measuring(testbed, convolutions(3))
    part = Trace(convolutions(1))
    (first,), (second,) = (judge.for_part(part.out_mod).evaluate([part]) for _ in range(2))
    (inside,) = judge.for_part(convolutions(2)).for_part(part.out_mod).evaluate([part])
    assert (first.is_new, second.is_new, inside.is_new) == (True, False, False)
    assert first.perf == second.perf == inside.perf
