"""TunePlacement: who runs the program or its parts is decided by cost, with passes before and behind."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tests.picky_toolchains as picky
from tests.collage_programs import program
from tests.faulty_toolchains import faulty_toolchains
from tests.mock_cost_estimator import MockCostEstimator
from tests.pass_checks import assert_same_results
from tests.planned_meter import PlannedMeter
from tests.tuning_passes import CostTable, Deciding, NoteHeuristic
from tests.unit.measure.quick_testbed import POLICY

from intarsia.collage.costs.cost_estimator import COST_ESTIMATORS
from intarsia.collage.placement.placement import Partition, Placement
from intarsia.collage.tune_placement import TunePlacement
from intarsia.ir import Constant, DType, Function, IRModule, TensorType, Var, structural_digest
from intarsia.ir.printer import print_module
from intarsia.measure.measure_input import Workload
from intarsia.measure.measurer import Measurer
from intarsia.measure.testbed.limits import TestbedLimits
from intarsia.measure.testbed.local import LocalTestbed
from intarsia.op import call
from intarsia.op.operator_predicate import holding_operator_predicate
from intarsia.passes import InferType, partition_whole
from intarsia.runtime.kernel import TOOLCHAINS
from intarsia.support.errors import MissingToolchainError, UsageError
from intarsia.target import Host, Target
from intarsia.transform import ModulePass, Pass, PassContext, get_pass
from intarsia.transform.pass_trace import plain_options
from intarsia.transform.replay import made_pass
from intarsia.tune import (
    Choice,
    Evaluation,
    Instruction,
    MeasuringEvaluator,
    Trace,
    TuneInTurns,
    TuningContext,
    TuningPass,
)
from intarsia.tune.passes import TuneCombineParallel
from intarsia.tune.run_control import RunControl
from intarsia.tune.strategy import SearchLimits
from intarsia.tune.target_options import marked_functions, set_target_options

pytestmark = pytest.mark.quick_tests(
    14,
    also=[
        "test_a_pass_before_the_placement_may_not_give_the_program_away",
        "test_mistakes[another toolchain]",
        "test_mistakes[estimator]",
    ],
)

CHAIN = "def @main(%x: T) { Tanh(Relu(Abs(%x))) }"
BOTH = ("right", "reference")


@pytest.fixture(autouse=True)
def toolchains() -> Iterator[None]:
    mock = MockCostEstimator({"right": 1.0, "wrong": 2.0, "reference": 5.0})
    with (
        faulty_toolchains(),
        holding_operator_predicate("right", lambda each: str(each.op) != "Tanh"),
        holding_operator_predicate("wrong", lambda each: True),
        COST_ESTIMATORS.holding("mocked", mock),
    ):
        yield


def runners(mod: IRModule) -> list[str]:
    return sorted(str(each.target.toolchain) for each in marked_functions(mod))


def fastest(**seconds: float) -> Callable[[IRModule], float]:
    """Costs by who runs something, joined by underscores."""
    return lambda mod: seconds.get("_".join(dict.fromkeys(runners(mod))), 9.0)


def tuned(
    tuning: TunePlacement, judge: Any, mod: IRModule | None = None, control: RunControl | None = None
) -> tuple[Trace, TuningContext]:
    ctx = TuningContext(judge, control=control)
    return tuning.tune(Trace(program(CHAIN) if mod is None else mod), ctx), ctx


@dataclass(frozen=True)
class RaiseAlways(ModulePass, opt_level=0):
    """Always raises."""

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        raise ValueError("not on this one")


def test_the_whole_goes_to_who_runs_it_fastest() -> None:
    trace, ctx = tuned(TunePlacement(targets=BOTH), CostTable(fastest(right=2.0, reference=1.0)))
    assert [(each.instruction.name, each.decision) for each in trace.steps] == [("placement", "reference")]
    assert runners(trace.out_mod) == ["reference"]
    assert trace.perf == 1.0
    assert ctx.counts.proposed == 2
    assert_same_results(trace.in_mod, trace.out_mod)


def test_what_was_named_first_wins_ties() -> None:
    for targets in (BOTH, BOTH[::-1]):
        trace, _ = tuned(TunePlacement(targets=targets, estimator="mocked"), CostTable())
        assert runners(trace.out_mod) == [targets[0]]


def test_targets_of_one_toolchain_are_told_apart() -> None:
    targets = ("right", "cpu -toolchain=right -threads=2", "cpu -toolchain=right")
    trace, ctx = tuned(
        TunePlacement(targets=targets), CostTable(lambda mod: 1.0 if "threads" in str(mod) else 2.0)
    )
    assert [each.decision for each in trace.steps] == ["cpu -toolchain=right -threads=2"]
    assert ctx.num_evals == 2


def test_parts_that_collage_finds_are_candidates() -> None:
    judge = CostTable(fastest(right=3.0, reference=2.0, reference_right=1.0))
    trace, ctx = tuned(TunePlacement(targets=BOTH, estimator="mocked", covers=3), judge)
    assert set(runners(trace.out_mod)) == {"right", "reference"}
    assert trace.steps[0].decision.startswith("right 2, reference 1")
    assert 3 <= ctx.num_evals <= 5
    assert ctx.counts.measured == ctx.num_evals
    assert_same_results(trace.in_mod, trace.out_mod)
    none, few = tuned(TunePlacement(targets=BOTH, estimator="mocked", covers=0), judge)
    assert runners(none.out_mod) == ["reference"]
    assert few.num_evals == 2


def part(*nodes: int, toolchain: str = "right") -> Partition:
    return Partition("main", f"cpu -toolchain={toolchain}", nodes, "Abs+Relu")


def test_given_placements_are_candidates_where_they_fit() -> None:
    fitting, other = Placement((part(1, 2), part(3, toolchain="reference"))), Placement((part(7),))
    judge = CostTable(fastest(right=3.0, reference=2.0, reference_right=1.0))
    trace, ctx = tuned(TunePlacement(targets=BOTH, placements=(other, fitting, fitting)), judge)
    assert trace.steps[0].decision == "right 1, reference 1"
    assert ctx.num_evals == 3


@pytest.mark.processes
def test_a_trace_replays_in_a_fresh_process(tmp_path: Path) -> None:
    mod = program(CHAIN)
    placements = (Placement((part(1, 2, toolchain="reference"), part(3, toolchain="reference"))),)
    judge = CostTable(lambda each: 1.0 / len(runners(each)))
    trace, _ = tuned(TunePlacement(targets=("reference",), placements=placements), judge, mod)
    assert runners(trace.out_mod) == ["reference", "reference"]
    (tmp_path / "trace.json").write_text(trace.to_json())
    (tmp_path / "program.txt").write_text(print_module(mod).text)
    script = f"""
from pathlib import Path
from intarsia.ir import structural_digest
from intarsia.ir.parser import parse_module
from intarsia.tune import Trace
folder = Path({str(tmp_path)!r})
mod = parse_module((folder / "program.txt").read_text())
print(structural_digest(Trace.from_json((folder / "trace.json").read_text(), mod).out_mod))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == structural_digest(trace.out_mod)


def test_passes_before_the_placement_decide_for_each_target() -> None:
    """One way is best on the right one, the other way on the reference: neither alone says who wins."""

    def cost(mod: IRModule) -> float:
        costs = {("right", "0"): 4.0, ("right", "1"): 1.0, ("reference", "0"): 2.0, ("reference", "1"): 3.0}
        return costs[runners(mod)[0], str(mod.attrs["fact"])]

    trace, ctx = tuned(TunePlacement(targets=BOTH, eval_passes=(Deciding(),)), CostTable(cost))
    assert [each.decision for each in trace.steps] == ["1", "right"]
    assert (trace.perf, ctx.counts.proposed, ctx.counts.measured) == (1.0, 2 * 2, 4)
    assert str(ctx.node).splitlines()[1:4] == ["  right: 1000 ms", "    Deciding", "      0: 4000 ms"]


def test_each_toolchain_has_passes_of_its_own() -> None:
    own = {"right": (Deciding(values=("0", "1", "2")), NoteHeuristic())}
    judge = CostTable(fastest(right=1.0))
    trace, ctx = tuned(TunePlacement(targets=BOTH, toolchain_passes=own), judge)
    assert [each.decision for each in trace.steps] == ["0", "Applied", "right"]
    assert ctx.num_evals == 3 + 1 + 1  # a heuristic pass behind makes another program; one for the reference
    other, _ = tuned(TunePlacement(targets=BOTH, toolchain_passes=own), CostTable(fastest(reference=1.0)))
    assert [each.decision for each in other.steps] == ["reference"]
    assert "fact" not in other.out_mod.attrs


@dataclass(frozen=True)
class TuneThreads(TuningPass):
    """Decides the threads of the functions of a toolchain."""

    def instructions(self, trace: Trace, ctx: TuningContext) -> Sequence[Instruction]:
        threads = {"toolchain": "right", "options": {"threads": 2}}
        return [Instruction("threads", {"default": Choice(), "2": Choice(set_target_options, threads)})]


def placed_options(mod: IRModule) -> list[tuple[str, object]]:
    return [(str(each.target.toolchain), each.target.option("threads")) for each in marked_functions(mod)]


@pytest.mark.parametrize("reach", [None, 1.5])
def test_passes_on_a_target_decide_for_all_passes_behind(reach: float | None) -> None:
    """With two threads `right` is the fastest: then both other decisions, and parts, are for two threads."""

    def cost(mod: IRModule) -> float:
        slow: dict[tuple[str, object], float] = {
            ("right", None): 2.0,
            ("right", 2): 1.5,
            ("reference", None): 1.6,
        }
        gain = 0.1 if mod.attrs.get("fact") == "1" else 0.0
        return sum(slow[each] for each in placed_options(mod)) - gain

    tuning = TunePlacement(
        targets=BOTH, target_passes={"right": [TuneThreads()]}, eval_passes=(Deciding(),), reach=reach
    )
    trace, ctx = tuned(tuning, CostTable(cost))
    assert (placed_options(trace.out_mod), trace.perf) == ([("right", 2)], 1.4)
    assert [each.decision for each in trace.steps] == ["1", "right"]
    assert str(ctx.node).splitlines()[1:5] == [
        "  right: 2000 ms",
        "    TuneThreads",
        "      default: 2000 ms",
        "      2: 1500 ms  <- chosen",
    ]
    tried = {
        options for node in ctx.node.children if node.trace for options in placed_options(node.trace.out_mod)
    }
    assert tried == {("right", None), ("right", 2), ("reference", None)}


def test_a_target_keeps_its_options_where_others_are_no_faster() -> None:
    tuning = TunePlacement(targets=BOTH, target_passes={"right": [TuneThreads()]})
    trace, ctx = tuned(tuning, CostTable(fastest(right=1.0, reference=2.0)))
    assert placed_options(trace.out_mod) == [("right", None)]
    assert ctx.counts.measured == 3


def test_no_option_lets_a_target_that_is_far_behind_catch_up() -> None:
    control = RunControl()
    tuning = TunePlacement(targets=BOTH, target_passes={"right": [TuneThreads()]})
    _, ctx = tuned(tuning, CostTable(fastest(right=4.0, reference=1.0)), control=control)
    assert ctx.counts.measured == 2
    assert list(map(str, control.skipped)) == [
        "TuneThreads for right: it takes 4.0 times as long as the fastest"
    ]


def test_passes_behind_the_placement_decide_for_each_candidate() -> None:
    judge = CostTable(fastest(right=3.0, reference=2.0, reference_right=1.0))
    alone, first = tuned(TunePlacement(targets=BOTH, estimator="mocked", covers=2), judge)
    both, second = tuned(
        TunePlacement(targets=BOTH, estimator="mocked", covers=2, placed_passes=(Deciding(),)), judge
    )
    assert second.num_evals == 2 * first.num_evals
    assert [each.decision for each in both.steps] == [alone.steps[0].decision, "0"]


def test_parts_are_of_the_program_that_the_best_target_gets() -> None:
    judge = CostTable(fastest(right=3.0, reference=2.0, reference_right=1.0))
    heuristic = TunePlacement(targets=BOTH, eval_passes=(NoteHeuristic(),), estimator="mocked", covers=1)
    trace, _ = tuned(heuristic, judge)
    assert trace.steps[0].decision == "Applied"
    assert set(runners(trace.out_mod)) == {"right", "reference"}
    assert trace.out_mod.attrs["heuristic"] == "yes"


def test_a_pass_before_the_placement_may_not_give_the_program_away() -> None:
    with pytest.raises(UsageError, match="has given to reference what was to be tried on right"):
        tuned(TunePlacement(targets=BOTH, eval_passes=(TunePlacement(targets=("reference",)),)), CostTable())


def test_it_decides_jointly_inside_of_another_pass() -> None:
    def cost(mod: IRModule) -> float:
        return {("right", "0"): 4.0, ("reference", "1"): 1.0}.get(
            (runners(mod)[0], str(mod.attrs["fact"])), 5.0
        )

    ctx = TuningContext(CostTable(cost))
    after = Deciding((TunePlacement(targets=BOTH),))(program(CHAIN), ctx)
    assert (runners(after), after.attrs["fact"], ctx.num_evals) == (["reference"], "1", 2 * 2)


@pytest.mark.parametrize(("trials", "expected"), [(1, 1), (2, 2), (3, 3), (50, 3)])
def test_limits_end_it_with_what_is_known(trials: int, expected: int) -> None:
    judge = CostTable(lambda mod: 1.0 / len(runners(mod)))
    tuning = TunePlacement(targets=BOTH, estimator="mocked", covers=2, limits=SearchLimits(trials=trials))
    trace, ctx = tuned(tuning, judge)
    assert ctx.num_evals == expected
    assert (len(runners(trace.out_mod)) > 1) == (trials > 2)


def test_a_wish_to_stop_is_heard() -> None:
    stopped = RunControl(should_stop=lambda: True)
    trace, ctx = tuned(TunePlacement(targets=BOTH), CostTable(), control=stopped)
    assert (trace.out_mod is trace.in_mod, ctx.num_evals) == (True, 0)


def test_what_is_placed_stays() -> None:
    mod = partition_whole(program(CHAIN), Target.for_toolchain("reference"))
    ctx = TuningContext(CostTable())
    assert TunePlacement(targets=BOTH)(mod, ctx) is mod
    assert ctx.num_evals == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"targets": ("cpu -threads=2",)}, "names no toolchain"),
        ({"targets": ("nobody",)}, "unknown toolchain 'nobody'"),
        ({"seconds": -1.0}, "expected 0 or more, got seconds=-1.0"),
        ({"covers": -1}, "expected 0 or more, got seconds=60.0, covers=-1"),
        ({"targets": BOTH, "toolchain_passes": {"wrong": ()}}, "'wrong', which is no target"),
        ({"targets": BOTH, "target_passes": {"wrong": ()}}, "target_passes has 'wrong', which is no target"),
        ({"targets": BOTH, "estimator": "vibes"}, "unknown cost estimator 'vibes'"),
    ],
    ids=["target", "toolchain", "seconds", "covers", "another toolchain", "options of another", "estimator"],
)
def test_mistakes(options: dict[str, Any], message: str) -> None:
    with pytest.raises((UsageError, MissingToolchainError), match=message):
        tuned(TunePlacement(**options), CostTable())


def test_its_options_are_plain_data() -> None:
    tuning = TunePlacement(
        targets=BOTH,
        toolchain_passes={"right": [NoteHeuristic()]},
        placements=(Placement((part(1, 2),)),),
        seconds=5.0,
    )
    assert get_pass("TunePlacement", targets=BOTH) == TunePlacement(targets=BOTH)
    assert made_pass("TunePlacement", plain_options(tuning)) == tuning
    assert hash(tuning) == hash(replace(tuning))


class TestMeasured:
    """With builds in worker processes."""

    @pytest.fixture
    def testbed(self) -> Iterator[LocalTestbed]:
        with (
            TOOLCHAINS.holding("no_relu", picky.NoRelu),
            TOOLCHAINS.holding("no_tanh", picky.NoTanh),
            holding_operator_predicate("no_relu", picky.NoRelu().supports),
            holding_operator_predicate("no_tanh", picky.NoTanh().supports),
            LocalTestbed.open(
                Host.detect(), workers=2, limits=TestbedLimits(policy=POLICY), preload=(picky.__name__,)
            ) as opened,
        ):
            yield opened

    @pytest.mark.slow
    @pytest.mark.parametrize("eval_passes", [(), (NoteHeuristic(),)], ids=["as it is", "another program"])
    def test_what_nobody_runs_alone_is_divided(
        self, testbed: LocalTestbed, eval_passes: tuple[Pass, ...]
    ) -> None:
        mod = program("def @main(%x: T) { Tanh(Relu(Tanh(Relu(%x)))) }")
        judge = MeasuringEvaluator(Workload(mod), Target.for_toolchain("reference"), Measurer(testbed))
        tuning = TunePlacement(
            eval_passes=eval_passes, targets=("no_relu", "no_tanh"), seconds=600.0, covers=1
        )
        trace, ctx = tuned(tuning, judge, mod)
        assert set(runners(trace.out_mod)) == {"no_relu", "no_tanh"}
        assert trace.size == 1 + len(eval_passes)
        fates = [child.trace.fate for child in ctx.node.children[:2] if child.trace is not None]
        assert ["no_relu has no Relu" in fates[0], "no_tanh has no Tanh" in fates[1]] == [True, True]
        assert_same_results(mod, trace.out_mod)

    @pytest.mark.slow
    def test_a_search_of_parts_that_is_stopped_leaves_the_best_whole(self, testbed: LocalTestbed) -> None:
        mod = program("def @main(%x: T) { Tanh(Relu(%x)) }")
        measurer = Measurer(testbed)
        judge = MeasuringEvaluator(Workload(mod), Target.for_toolchain("reference"), measurer)
        never, asked = measurer.should_stop, count()
        control = RunControl(should_stop=lambda: next(asked) >= 12)
        tuning = TunePlacement(targets=("no_relu", "reference"), seconds=600.0)
        trace, ctx = tuned(tuning, judge, mod, control)
        assert (runners(trace.out_mod), ctx.num_evals) == (["reference"], 2)
        assert 12 < next(asked) < 60
        assert measurer.should_stop is never

    @pytest.mark.slow
    def test_with_combining_parallel_branches_in_both_orders(self, testbed: LocalTestbed) -> None:
        x = Var("x", checked_type=TensorType((4, 8), DType.FLOAT32))
        weights = [Constant(np.full((8, 8), value, np.float32)) for value in (0.5, 2.0)]
        products = [call("MatMul", x, each) for each in weights]
        mod = InferType()(IRModule.from_expr(Function((x,), call("Add", *products))))
        targets = ("cpu -toolchain=onnxruntime -threads=1", "reference")
        combine = TuneCombineParallel(convolutions=False, min_num_branches=(2,))
        for tuning in (
            TunePlacement(targets=targets, eval_passes=(combine,), seconds=0),
            replace(combine, eval_passes=(TunePlacement(targets=targets, seconds=0),)),
        ):
            judge = MeasuringEvaluator(Workload(mod), Target.for_toolchain("reference"), Measurer(testbed))
            ctx = TuningContext(judge)
            after = tuning(mod, ctx)
            assert (ctx.counts.proposed, ctx.counts.measured) == (4, 4)
            assert len(runners(after)) == 1
            assert_same_results(mod, after)


@dataclass(frozen=True)
class RaiseForRight(ModulePass, opt_level=0):
    """Raises where a function is given to one toolchain."""

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        if "right" in runners(mod):
            raise ValueError("not on this one")
        return mod


@pytest.mark.parametrize(
    "options",
    [{"placed_passes": (RaiseForRight(),)}, {"toolchain_passes": {"right": (RaiseAlways(),)}}],
    ids=["placed", "toolchain"],
)
def test_a_pass_that_raises_fails_the_candidate_of_that_target(options: dict[str, Any]) -> None:
    trace, ctx = tuned(
        TunePlacement(targets=BOTH, seconds=0, **options), CostTable(fastest(right=1.0, reference=2.0))
    )
    assert runners(trace.out_mod) == ["reference"]
    assert "ValueError: not on this one" in str(ctx.node)


def test_a_program_that_failed_by_itself_is_still_placed() -> None:
    begun = Trace(program(CHAIN))
    begun.fail("no engine was named")
    ctx = TuningContext(CostTable(fastest(right=1.0, reference=2.0)))
    recording = ctx.recording(begun)
    after = TunePlacement(targets=BOTH, seconds=0, eval_passes=(NoteHeuristic(),))(begun.out_mod, recording)
    assert runners(after) == ["right"]


@dataclass
class SecondEach(PlannedMeter, CostTable):
    """An evaluator whose measurements take a second each, by its own clock."""

    def evaluate(self, candidates: Sequence[Trace]) -> list[Evaluation]:
        self.spent += len(candidates)
        return super().evaluate(candidates)


def test_passes_on_the_whole_leave_time_for_parts() -> None:
    """They would go on to the end of the budget, and no part would be searched."""
    judge = SecondEach(fastest(reference=2.0, reference_right=1.0, right=inf))
    endless = TuneInTurns((Deciding(values=tuple(map(str, range(500)))),), slice_trials=4)
    placing = TunePlacement(
        targets=BOTH, reach=1.1, estimator="mocked", covers=2, eval_passes=(endless,), seconds=inf
    )
    control = RunControl(seconds=60.0, meter=judge, proves=True)
    trace, _ = tuned(placing, judge, control=control)
    assert set(runners(trace.out_mod)) == {"reference", "right"}
    assert control.spent < 60.0
    alone = SecondEach(fastest(reference=2.0, right=inf))
    control = RunControl(seconds=60.0, meter=alone, proves=True)
    tuned(replace(placing, covers=0), alone, control=control)
    assert control.spent >= 60.0


@pytest.mark.parametrize(
    ("right", "expected"), [(1.05, 29.0), (1.3, 58.0), (inf, 29.0)], ids=["near", "behind", "lacking"]
)
def test_time_is_left_for_parts_where_a_mix_is_likely_to_win(right: float, expected: float) -> None:
    seconds: list[float] = []

    @dataclass(frozen=True)
    class Watching(TuningPass, opt_level=0):
        """Changes nothing."""

        def tune(self, trace: Trace, ctx: TuningContext) -> Trace:
            seconds.append(ctx.control.seconds_left)
            return trace.copy()

    judge = SecondEach(fastest(reference=1.0, right=right))
    placing = TunePlacement(
        targets=BOTH, reach=1.1, estimator="mocked", covers=2, eval_passes=(Watching(),), seconds=inf
    )
    tuned(placing, judge, control=RunControl(seconds=60.0, meter=judge))
    assert seconds[0] == expected
