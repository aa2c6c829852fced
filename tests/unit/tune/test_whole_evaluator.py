"""What a program costs as a whole on a target."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.tuning_passes import CostTable, program
from tests.unit.measure.quick_testbed import HOST

from intarsia.ir import IRModule
from intarsia.measure.measure_input import Workload
from intarsia.measure.measurer import Measurer
from intarsia.measure.testbed.local import LocalTestbed
from intarsia.passes import partition_whole
from intarsia.support.errors import UsageError
from intarsia.target import Target
from intarsia.tune import Choice, Instruction, MeasuringEvaluator, Trace
from intarsia.tune.evaluation_log import LoggingEvaluator
from intarsia.tune.evaluator import Evaluator, EvaluatorOfKernels
from intarsia.tune.target_options import marked_functions
from intarsia.tune.whole_evaluator import WholeEvaluator, measuring_evaluator, whole_target

TARGETS = {name: Target.for_toolchain(name) for name in ("onnxruntime", "reference")}
WHOLE = Instruction(
    "whole", {name: Choice("PartitionWhole", {"target": str(each)}) for name, each in TARGETS.items()}
)


def on(name: str, inner: Evaluator) -> WholeEvaluator:
    return WholeEvaluator(inner, TARGETS[name], WHOLE, name)


def seconds(mod: IRModule) -> float:
    """By who runs it."""
    costs = {"onnxruntime": 1.0, "reference": 2.0}
    return sum(costs[str(each.target.toolchain)] for each in marked_functions(mod))


def test_programs_are_given_to_the_target_and_traces_stay() -> None:
    trace, judge = Trace(program()), CostTable(seconds)
    assert [on(name, judge).evaluate([trace])[0].perf for name in TARGETS] == [1.0, 2.0]
    assert (trace.size, trace.out_mod is trace.in_mod, trace.perf) == (0, True, None)
    assert on("reference", judge).for_part(program()).evaluate([trace])[0].perf == 2.0


def test_what_is_given_to_another_toolchain_is_refused() -> None:
    placed = Trace(partition_whole(program(), TARGETS["reference"]))
    assert on("reference", CostTable()).place_whole(placed).out_mod is placed.out_mod
    with pytest.raises(UsageError, match="has given to reference what was to be tried on onnxruntime"):
        on("onnxruntime", CostTable()).evaluate([placed])


class KernelClock(CostTable):
    """Times each kernel of a program as long as the program."""

    def time_kernels(self, candidates: Sequence[Trace], kernels: Sequence[str]) -> list[tuple[float, ...]]:
        return [(seconds(candidate.out_mod),) * len(kernels) for candidate in candidates]


def test_kernels_are_timed_within_the_placed_program(tmp_path: Path) -> None:
    trace = Trace(program())
    judge = on("reference", LoggingEvaluator(KernelClock(), tmp_path / "log"))
    assert isinstance(judge, EvaluatorOfKernels)
    assert judge.time_kernels([trace], ["a", "b"]) == [(2.0, 2.0)]
    assert on("reference", CostTable()).time_kernels([trace], ["a"]) is None, "no evaluator times kernels"


@pytest.mark.slow
def test_who_measures_and_where_is_found_behind_others(tmp_path: Path) -> None:
    with LocalTestbed.open(HOST, workers=1) as testbed:
        judge = MeasuringEvaluator(Workload(program()), TARGETS["reference"], Measurer(testbed))
        logged = LoggingEvaluator(judge, tmp_path / "log")
        assert measuring_evaluator(on("onnxruntime", logged)) is judge
        assert whole_target(logged) == TARGETS["reference"]
        assert whole_target(LoggingEvaluator(on("onnxruntime", judge), tmp_path)) == TARGETS["onnxruntime"]
    assert measuring_evaluator(CostTable()) is None
    assert whole_target(CostTable()) is None
