"""Candidates as programs that are built, checked and timed."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite
from pathlib import Path

import numpy as np
import pytest
from tests.unit.tune.test_trace import branches

from intarsia.ir import Constant, Function, IRModule, Tuple
from intarsia.measure.candidate_kind import WHOLE
from intarsia.measure.database import Database
from intarsia.measure.measure_input import MeasureInput, Workload
from intarsia.measure.measure_result import MeasureError, MeasureResult
from intarsia.measure.measurer import Measurer
from intarsia.measure.testbed.local import LocalTestbed
from intarsia.measure.timing.timing import TimingPolicy
from intarsia.op import call
from intarsia.passes import InferType, partition_whole
from intarsia.support.errors import UsageError
from intarsia.target import Target
from intarsia.transform import PassContext, PassSettings
from intarsia.tune import (
    Choice,
    Instruction,
    MeasuringEvaluator,
    Trace,
    TuningContext,
    TuningPass,
    transformation,
)
from intarsia.tune.run_control import RunControl

POLICY = TimingPolicy(warmup_seconds=0, warmup_calls=1, repeats=3, min_repeats=3, min_repeat_seconds=0)
TARGET = Target("cpu -toolchain=onnxruntime -threads=1")


@transformation
def doubled(mod: IRModule) -> IRModule:
    """A transformation that is wrong."""
    main = mod["main"]
    two = Constant(np.array(2, np.float32))
    assert isinstance(main.body, Tuple)
    body = Tuple(tuple(call("Mul", field, two) for field in main.body.fields))
    return InferType()(IRModule.from_expr(Function(main.params, body)))


@dataclass(frozen=True)
class TuneCombine(TuningPass):
    def instructions(self, trace: Trace, ctx: TuningContext) -> list[Instruction]:
        choices = {"On": Choice("CombineParallelConv2D"), "Off": Choice(), "Wrong": Choice(doubled)}
        return [Instruction("combine", choices)]


@dataclass(frozen=True)
class TuneToolchain(TuningPass):
    def instructions(self, trace: Trace, ctx: TuningContext) -> list[Instruction]:
        targets = ("cpu -toolchain=reference", "cpu -toolchain=onnxruntime -threads=1")
        return [Instruction("toolchain", [Choice("PartitionWhole", {"target": each}) for each in targets])]


@pytest.fixture
def testbed(shared_testbed: LocalTestbed) -> LocalTestbed:
    return shared_testbed


def evaluator(
    testbed: LocalTestbed, database: Database | None = None, **options: object
) -> MeasuringEvaluator:
    return MeasuringEvaluator(Workload(branches()), TARGET, Measurer(testbed, database), **options)  # type: ignore[arg-type]


@pytest.mark.slow
def test_joint_tuning_of_real_passes_is_measured_once_and_resumes(
    testbed: LocalTestbed, tmp_path: Path
) -> None:
    with Database.open(tmp_path / "kept.db") as database:
        results, measured = [], []
        for _ in range(2):
            ctx = TuningContext(evaluator(testbed, database))
            results.append(TuneCombine((TuneToolchain(),))(branches(), ctx))
            assert ctx.num_evals == 2 * 3 + 1  # where no toolchain is right, the program as it is as well
            measured.append(ctx.counts.measured)
        assert measured == [7, 0]
    first, second = map(str, results)
    assert first == second
    assert "Compiler=" in first


@pytest.mark.slow
def test_a_wrong_candidate_has_failed_and_says_so(testbed: LocalTestbed) -> None:
    judge = evaluator(testbed)
    right, wrong, again = Trace(branches()), Trace(branches()), Trace(branches())
    wrong.add(Instruction("spoil", {"yes": Choice(doubled)}), "yes")
    found = judge.evaluate([right, wrong, again])
    assert isfinite(found[0].perf)
    assert found[0].is_ok
    assert found[1].perf == inf
    assert "wrong answer" in found[1].fate
    assert (found[2].perf, found[2].is_new) == (found[0].perf, False)


@pytest.mark.slow
def test_a_transformation_that_fails_in_a_worker_fails_its_candidate(testbed: LocalTestbed) -> None:
    """Workers cannot import this module, so that its transformation exists here only."""
    judge = evaluator(testbed, by_decisions=True)
    trace = Trace(judge.workload.module)
    trace.add(Instruction("spoil", {"yes": Choice(doubled)}), "yes")
    (found,) = judge.evaluate([trace])
    assert found.perf == inf
    assert found.fate.startswith("instantiation: unknown transformation 'doubled'")


def test_a_measurement_without_a_cost_has_failed(testbed: LocalTestbed) -> None:
    judge = evaluator(testbed)
    whole = MeasureInput(judge.workload, TARGET, WHOLE)
    judge.learn(whole, MeasureResult((), MeasureError.OK, "", 1.0, 0.0))
    trace = Trace(judge.workload.module)
    trace.add(Instruction("place", [Choice("PartitionWhole", {"target": str(TARGET)})]), "0")
    (found,) = judge.evaluate([trace])
    assert (found.perf, found.fate) == (inf, "its measurement has no cost")


@pytest.mark.processes
def test_candidates_beyond_the_budget_have_failed(testbed: LocalTestbed) -> None:
    found = evaluator(testbed, control=RunControl(trials=0)).evaluate([Trace(branches())])
    assert found[0].perf == inf
    assert "budget" in found[0].fate
    assert not found[0].is_new


@pytest.mark.parametrize("metric", ["median", "mean", "least"])
def test_metrics(testbed: LocalTestbed, metric: str) -> None:
    assert evaluator(testbed, metric=metric).evaluate([Trace(branches())])[0].is_ok


def test_an_unknown_metric_is_refused(testbed: LocalTestbed) -> None:
    with pytest.raises(UsageError, match="unknown metric 'vibes'"):
        evaluator(testbed, metric="vibes")


def test_parts_and_programs_have_the_settings_of_the_workload(testbed: LocalTestbed) -> None:
    with PassContext(disabled_pass=["LoopPartition"]):
        judge = evaluator(testbed)
    settings = judge.workload.settings
    assert settings != PassSettings()
    mod = judge.workload.module
    assert judge.for_part(mod).workload.settings == settings
    assert judge.input(Trace(mod)).workload.settings == settings


@transformation
def given_away(mod: IRModule) -> IRModule:
    """A decision that gives the program to its toolchain, as those on native's kernels do."""
    return partition_whole(mod, TARGET)


def test_a_program_that_is_given_away_by_a_decision_is_measured_once(testbed: LocalTestbed) -> None:
    """A placement behind the decision changes nothing, and is another way to write the candidate."""
    judge = evaluator(testbed, by_decisions=True)
    ctx = TuningContext(judge)
    alone = Trace(judge.workload.module)
    alone.add(Instruction("give away", {"to it": Choice(given_away)}), "to it", ctx)
    placed = alone.copy()
    placed.add(Instruction("target", {"it": Choice("PartitionWhole", {"target": str(TARGET)})}), "it", ctx)
    assert judge.input(alone).candidate != judge.input(placed).candidate
    judge.evaluate([placed])
    assert judge.input(alone) == judge.input(placed)
