"""TuneSchedule: a search's schedules are one more candidate, for native's parts or the whole."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from tests.gpu_schedules import any_schedule
from tests.pass_checks import assert_same_results
from tests.scheduled_products import NATIVE, REFERENCE, product, with_winner

from intarsia.autoschedule.extraction import ExtractedTask
from intarsia.autoschedule.tuning import gpu_schedules, schedule_log
from intarsia.autoschedule.tuning.schedule_log import ScheduleLogs
from intarsia.autoschedule.tuning.search_schedules import SearchedSchedules
from intarsia.autoschedule.tuning.tune_schedule import DEFAULT, TuneSchedule
from intarsia.collage.tune_placement import TunePlacement
from intarsia.ir import Constant, DType, Function, IRModule, TensorType, Var, structural_digest
from intarsia.measure.database import Database
from intarsia.measure.measure_input import Workload
from intarsia.measure.measurer import Measurer
from intarsia.measure.testbed.local import LocalTestbed
from intarsia.native.loop_state import LoopState
from intarsia.native.schedule import ScheduleLog
from intarsia.op import call
from intarsia.passes import InferType, partition_whole
from intarsia.support.errors import UsageError
from intarsia.target import Target
from intarsia.toolchain.native.caches import schedule_folder
from intarsia.transform import get_pass
from intarsia.tune import Evaluation, MeasuringEvaluator, Trace, TuningContext
from intarsia.tune.passes import TuneCombineParallel
from intarsia.tune.run_control import RunControl
from intarsia.tune.strategy import SearchLimits
from intarsia.tune.target_options import marked_functions
from intarsia.tune.whole_evaluator import measuring_evaluator

pytest.importorskip("llvmlite", reason="schedules are of native kernels")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of the user that is empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database.open(tmp_path / "kept.db") as opened:
        yield opened


@pytest.fixture
def testbed(shared_testbed: LocalTestbed) -> LocalTestbed:
    return shared_testbed


@dataclass(eq=False)
class Planted(MeasuringEvaluator):
    """Costs by the targets that a program names; it knows a database, and measures nothing."""

    cost: Callable[[IRModule], float] = lambda _: 1.0

    def evaluate(self, candidates: Sequence[Trace]) -> list[Evaluation]:
        return [Evaluation(self.cost(each.out_mod)) for each in candidates]


def planted(
    testbed: LocalTestbed,
    database: Database | None,
    cost: Callable[[IRModule], float] = lambda _: 1.0,
    target: Target = NATIVE,
) -> TuningContext:
    return TuningContext(Planted(Workload(product()), target, Measurer(testbed, database), cost=cost))


def logs_pay(mod: IRModule) -> float:
    return 1.0 if any(each.option("schedules") for each in targets(mod)) else 2.0


def targets(mod: IRModule) -> list[Target]:
    return [each.target for each in marked_functions(mod)]


KNOWN = TuneSchedule(seconds=0)
"""It searches nothing, and tries what has won before."""


def test_what_has_won_is_a_candidate_and_wins_if_it_is_faster(
    testbed: LocalTestbed, database: Database
) -> None:
    (task,) = with_winner(product(), database)
    log = ScheduleLog.of_states([LoopState.initial(task.task.dag)])
    ctx = planted(testbed, database, logs_pay)
    after = KNOWN(product(), ctx)
    assert targets(after) == [NATIVE.with_options(schedules=log.digest)]
    assert ctx.num_evals == 2
    assert ScheduleLog.load(schedule_folder(), log.digest) == log
    assert_same_results(product(), after)


def test_default_schedules_win_ties(testbed: LocalTestbed, database: Database) -> None:
    with_winner(product(), database)
    mod, ctx = product(), planted(testbed, database)
    assert KNOWN(mod, ctx) is mod
    assert ctx.num_evals == 2
    assert ctx.node.children[0].children[0].name == DEFAULT


def test_a_target_of_its_own_gets_the_whole(testbed: LocalTestbed, database: Database) -> None:
    with_winner(product(), database)
    own = TuneSchedule(target=str(NATIVE), seconds=0)
    assert targets(own(product(), planted(testbed, database, target=REFERENCE))) == [NATIVE]
    faster = own(product(), planted(testbed, database, logs_pay, REFERENCE))
    assert [each.with_options(schedules=None) for each in targets(faster)] == [NATIVE]
    assert logs_pay(faster) == 1.0


def test_kernels_for_a_gpu_get_schedules_of_less_static_cost(
    testbed: LocalTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu_schedules, "least_static_cost", any_schedule)
    gpu = Target("cuda -toolchain=native")
    search = TuneSchedule(seconds=2, share=1)
    ctx = planted(testbed, None, logs_pay, gpu)
    (target,) = targets(search(product(), ctx))
    assert target.kind == "cuda"
    assert len(ScheduleLog.load(schedule_folder(), str(target.option("schedules")))) == 1
    assert ctx.num_evals == 2


def test_functions_that_native_has_get_the_book(testbed: LocalTestbed, database: Database) -> None:
    with_winner(product(), database)
    mod = partition_whole(product(), NATIVE)
    trace = KNOWN.tune(Trace(mod), planted(testbed, database, logs_pay, REFERENCE))
    assert [each.option("threads") for each in targets(trace.out_mod)] == [1]
    assert logs_pay(trace.out_mod) == 1.0
    again = Trace.from_json(trace.to_json(), partition_whole(product(), NATIVE))
    assert structural_digest(again.out_mod) == structural_digest(trace.out_mod)


def test_a_function_with_a_log_keeps_it(testbed: LocalTestbed, database: Database) -> None:
    with_winner(product(), database)
    given = partition_whole(product(), NATIVE.with_options(schedules="0123456789abcdef"))
    assert KNOWN(given, planted(testbed, database, logs_pay)) is given


def test_stored_schedules_are_tried_where_a_search_has_too_little_time(
    testbed: LocalTestbed, database: Database
) -> None:
    (task,) = with_winner(product(), database)
    log, ctx = ScheduleLog.of_states([LoopState.initial(task.task.dag)]), planted(testbed, database, logs_pay)
    short = RunControl(5.0, on_progress=lambda *_: pytest.fail("a search has begun"))
    after = TuneSchedule()(product(), ctx.within(short))
    assert targets(after) == [NATIVE.with_options(schedules=log.digest)]
    (skipped,) = short.skipped
    assert re.match(r"the search of schedules: its share of \d\.\d s is too little: --sched", str(skipped))


@pytest.mark.parametrize(
    ("mod", "target"),
    [
        (product(), REFERENCE),
        (partition_whole(product(), REFERENCE), NATIVE),
        (product("Unique"), NATIVE),
        (product("Tanh"), NATIVE),
    ],
    ids=["another target", "another toolchain", "not able", "nothing known"],
)
def test_without_a_schedule_there_is_nothing_to_decide(
    testbed: LocalTestbed, database: Database, mod: IRModule, target: Target
) -> None:
    with_winner(product(), database)
    ctx = planted(testbed, database, target=target)
    assert KNOWN(mod, ctx) is mod
    assert ctx.num_evals == 1


def test_it_decides_behind_a_placement_and_before_it(testbed: LocalTestbed, database: Database) -> None:
    with_winner(product(), database)
    both = (str(NATIVE), str(REFERENCE))
    for tuning in (
        TunePlacement(targets=both, placed_passes=(KNOWN,), seconds=0),
        TunePlacement(targets=both, eval_passes=(KNOWN,), seconds=0),
    ):
        ctx = planted(testbed, database, logs_pay, REFERENCE)
        after = tuning(product(), ctx)
        assert [each.toolchain for each in targets(after)] == ["native"]
        assert logs_pay(after) == 1.0
        assert ctx.num_evals == 2 + 1


def test_its_limits_reach_the_search(
    testbed: LocalTestbed, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedule_log, "PoolMeasurer", None)  # it would be opened for a search
    stopped = TuneSchedule(trials=3)
    mod, ctx = product(), planted(testbed, database)
    assert stopped(mod, ctx.within(RunControl(should_stop=lambda: True))) is mod


def test_a_slice_with_more_trials_searches_nothing_again(
    testbed: LocalTestbed, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search counts as measuring; without a database too the pass finds the same log again."""
    made: list[float] = []

    def make(logs: ScheduleLogs, tasks: Sequence[ExtractedTask], _: object) -> SearchedSchedules:
        made.append(logs.seconds)
        log = ScheduleLog.of_states([LoopState.initial(task.task.dag) for task in tasks])
        return SearchedSchedules(log, (), 5, 1.0)

    monkeypatch.setattr(schedule_log.ScheduleLogs, "make", make)
    ctx, mod = planted(testbed, None, logs_pay), product()
    for trials in (1, 2):
        limits = SearchLimits(trials=trials, seconds=5000.0)
        TuneSchedule(limits=limits)(mod, ctx)
    (seconds,) = made
    assert seconds == TuneSchedule().seconds
    judge = measuring_evaluator(ctx.evaluator)
    assert judge is not None
    assert judge.measurer.spent > 0
    assert judge.measurer.trials - judge.measurer.candidates == 5


def test_a_resumed_run_counts_what_the_search_took_at_first(
    testbed: LocalTestbed, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    trials = iter((5, 0))

    def make(_: ScheduleLogs, tasks: Sequence[ExtractedTask], __: object) -> SearchedSchedules:
        log = ScheduleLog.of_states([LoopState.initial(task.task.dag) for task in tasks])
        return SearchedSchedules(log, (), next(trials), 1.0)

    monkeypatch.setattr(schedule_log.ScheduleLogs, "make", make)
    counted = []
    for _ in range(2):
        ctx = planted(testbed, database, logs_pay)
        TuneSchedule()(product(), ctx)
        judge = measuring_evaluator(ctx.evaluator)
        assert judge is not None
        counted.append((judge.measurer.spent, judge.measurer.trials, judge.measurer.candidates))
    assert counted[0] == counted[1]
    assert counted[0][1] - counted[0][2] == 5
    assert counted[0][0] > 0


def test_mistakes_and_the_name() -> None:
    for wrong in ("cpu", str(REFERENCE)):
        with pytest.raises(UsageError, match="schedules are of native kernels"):
            TuneSchedule(target=wrong)
    with pytest.raises(UsageError, match="of None trials in -1"):
        TuneSchedule(seconds=-1.0)
    with pytest.raises(UsageError, match="of 0 trials in 60"):
        TuneSchedule(trials=0)
    with pytest.raises(UsageError, match=r"least_share is 1\.0"):
        TuneSchedule(least_share=1.0)
    with pytest.raises(UsageError, match="share is 0; expected a share above 0"):
        TuneSchedule(share=0)
    assert get_pass("TuneSchedule", trials=9) == TuneSchedule(trials=9)


@pytest.mark.slow
def test_a_real_search_jointly_with_another_pass(testbed: LocalTestbed, database: Database) -> None:
    """Each form of the program has kernels of its own; the same run again searches and measures nothing."""
    x = Var("x", checked_type=TensorType((8, 16), DType.FLOAT32))
    weights = [Constant(np.full((16, 8), value, np.float32)) for value in (0.5, 2.0)]
    products = [call("MatMul", x, each) for each in weights]
    mod = InferType()(IRModule.from_expr(Function((x,), call("Add", *products))))
    tuning = TuneCombineParallel(
        (TuneSchedule(trials=2, seconds=600.0),), convolutions=False, min_num_branches=(2,)
    )
    results, measured = [], []
    for _ in range(2):
        ctx = TuningContext(MeasuringEvaluator(Workload(mod), NATIVE, Measurer(testbed, database)))
        results.append(tuning(mod, ctx))
        assert 2 <= ctx.num_evals <= 4
        measured.append(ctx.counts.measured)
        decisions = [child.name for child in ctx.node.children[0].children]
        assert decisions == ["Off", "On(2)"]
    assert measured[1] == 0 < measured[0]
    assert structural_digest(results[0]) == structural_digest(results[1])
    assert_same_results(mod, results[0])
