"""Tuning a task with all that is usual, on worker processes of this machine."""

from pathlib import Path

import numpy as np
import pytest
from tests.native_workloads import matmul
from tests.schedule_measurers import SMALL_MACHINE, FakeMeasurer, draft_seconds
from tests.searched_programs import task_of

from intarsia.autoschedule.cost_model import LearnedModel, usual_model
from intarsia.autoschedule.measuring import RecordToFile, load_records
from intarsia.autoschedule.policy import (
    EmptyPolicy,
    PolicyOptions,
    SketchPolicy,
    TuningOptions,
    apply_best,
    print_best,
    tune,
    usual_policy,
)
from intarsia.autoschedule.population import with_bounds
from intarsia.autoschedule.task import HardwareParams, SearchTask
from intarsia.ir import GlobalVar, IRModule
from intarsia.native.compile_kernel import compile_kernel
from intarsia.native.loop_state import LoopState
from intarsia.native.loop_state.layout_rewrite import LayoutRewriteOption
from intarsia.native.machine.isa import Isa
from intarsia.native.schedule import default_state
from intarsia.native.tir import default_tir
from intarsia.support.errors import DatabaseError, UsageError
from intarsia.target.target import Target

TASK = task_of(matmul(24, 24, 24), 1)
SOON = PolicyOptions(
    sample_init_min_population=6, evolutionary_search_population=8, evolutionary_search_num_iters=1
)


def default() -> LoopState:
    found = with_bounds(default_state(TASK.dag, Isa.host(), 1))
    assert found is not None
    return found


@pytest.mark.slow
def test_a_task_is_tuned_and_goes_on_from_its_log(tmp_path: Path) -> None:
    log = tmp_path / "log.json"
    best = tune(TASK, TuningOptions(3), log=log)
    assert best is not None
    assert (
        apply_best(TASK, log, option=LayoutRewriteOption.NO_REWRITE).state.transform_steps
        == best.transform_steps
    )
    first = load_records(log)
    assert first[0].steps == default().transform_steps
    trials, finalists = first[:3], first[3:]
    assert len(finalists) in {0, 2, 3}  # those near the best are measured again, unless it is alone
    assert len({str(record.steps) for record in trials}) == 3
    assert {str(record.steps) for record in finalists} <= {str(record.steps) for record in trials}
    assert [record.is_confirmed for record in first] == [False] * (len(first) - 1) + [bool(finalists)]
    assert tune(TASK, TuningOptions(5), log=log) is not None
    again = load_records(log)
    assert again[: len(first)] == first
    assert len({str(record.steps) for record in again[: len(first) + 2]}) == 5
    assert len({str(record.steps) for record in again}) == 5


def test_a_policy_that_is_given_searches() -> None:
    measurer = FakeMeasurer()
    assert tune(TASK, TuningOptions(4), EmptyPolicy(TASK, measurer)) == LoopState.initial(TASK.dag)
    assert len(measurer.measured) == 4
    with pytest.raises(UsageError, match="a log or callbacks were given beside a policy"):
        tune(TASK, TuningOptions(4), EmptyPolicy(TASK, measurer), log=Path("log.json"))


def test_the_usual_policy_begins_with_the_default_schedule() -> None:
    measurer = FakeMeasurer()
    policy = usual_policy(TASK, measurer, Isa.host(), SOON)
    policy.tune_round(4)
    assert measurer.measured[0] == default()
    assert len(measurer.measured) == 4


def test_the_usual_model_learns() -> None:
    assert isinstance(usual_model(SMALL_MACHINE), LearnedModel)


def logged(path: Path) -> list[LoopState]:
    """A log of a default schedule, a faster and a slower one."""
    faster, slower = (
        LoopState.initial(TASK.dag).parallel("C", 0),
        LoopState.initial(TASK.dag).split("C", "k", [2]),
    )
    states = [default(), faster, slower]
    cost = {default().text: 2.0, faster.text: 1.0, slower.text: 3.0}
    RecordToFile(path)(TASK, states, FakeMeasurer(lambda state: cost[state.text]).measure(TASK, states))
    return states


def test_the_best_schedule_of_a_log_is_applied(tmp_path: Path) -> None:
    _, faster, _ = logged(tmp_path / "log.json")
    plain = apply_best(TASK, tmp_path / "log.json", option=LayoutRewriteOption.NO_REWRITE)
    assert plain.state == faster
    assert plain.packings == ()
    made = apply_best(TASK, tmp_path / "log.json")  # packs B, as a task on its own does
    isa = Isa.host()
    function = made.lowered()
    mod = default_tir(isa.vector_bytes, isa.vector_registers)(IRModule({GlobalVar("f"): function}))
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, (24, 24)).astype(np.float32) for _ in range(2))
    c = np.zeros((24, 24), np.float32)
    compile_kernel(mod.prim_func("f"), isa).load()(a, b, c)
    np.testing.assert_array_equal(c, a @ b)


def test_the_log_of_a_search_its_resumption_and_its_result_agree(tmp_path: Path) -> None:
    """A lucky first measurement decides nothing, in the log no more than in the search."""
    log, states = tmp_path / "log.json", logged(tmp_path / "first.json")
    first = {state.text: cost for state, cost in zip(states, (2.0, 1.0, 1.1), strict=True)}
    again = {state.text: cost for state, cost in zip(states, (2.0, 1.3, 1.2), strict=True)}
    measurer = FakeMeasurer(lambda state: first[state.text], again=lambda state: again[state.text])
    policy = SketchPolicy(
        TASK, usual_model(SMALL_MACHINE), measurer, SOON, seeds=states, on_measured=[RecordToFile(log)]
    )
    best = policy.search(TuningOptions(3))
    assert best == states[2]
    assert (
        apply_best(TASK, log, option=LayoutRewriteOption.NO_REWRITE).state.transform_steps
        == best.transform_steps
    )
    resumed = usual_policy(TASK, measurer, Isa.host(), SOON)
    resumed.preload(load_records(log))
    assert (resumed.best_state, resumed.best_cost) == (best, policy.best_cost)
    assert resumed.search(TuningOptions(0)) == best


def test_the_best_schedule_of_a_log_is_printed(tmp_path: Path) -> None:
    logged(tmp_path / "log.json")
    assert print_best(TASK, tmp_path / "log.json") == (
        "C_i, C_j, C_k = tuple(C.op.axis) + tuple(C.op.reduce_axis)\ns[C].parallel(C_i)\n"
    )


def test_a_log_without_the_task_is_refused(tmp_path: Path) -> None:
    logged(tmp_path / "log.json")
    other = SearchTask(TASK.dag, Target("cpu"), HardwareParams(1), "another")
    with pytest.raises(DatabaseError) as caught:
        apply_best(other, tmp_path / "log.json")
    assert caught.value.problem == (
        f"{tmp_path / 'log.json'} has no schedule of workload another for cpu that works"
    )


def test_a_smaller_workload_may_lend_its_schedule(tmp_path: Path) -> None:
    small, large = (
        SearchTask(task_of(matmul(n, n, n), 1).dag, Target("cpu"), HardwareParams(1), f'["matmul", {n}]')
        for n in (8, 16)
    )
    state = LoopState.initial(small.dag).parallel("C", 0)
    RecordToFile(tmp_path / "log.json")(small, [state], FakeMeasurer(draft_seconds).measure(small, [state]))
    with pytest.raises(DatabaseError):
        apply_best(large, tmp_path / "log.json")
    made = apply_best(
        large, tmp_path / "log.json", include_compatible=True, option=LayoutRewriteOption.NO_REWRITE
    )
    assert made.state == LoopState.initial(large.dag).parallel("C", 0)
