"""The search of Ansor, with measurers whose costs are functions of states."""

from collections.abc import Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from random import Random

import numpy as np
import pytest
from tests.native_workloads import matmul, zero_rank_compute, zero_rank_reduce
from tests.schedule_measurers import SMALL_MACHINE, FakeMeasurer, FunctionModel, draft_seconds, failing
from tests.searched_programs import task_of

from intarsia.autoschedule.cost_model import (
    CostModel,
    DraftModel,
    RandomModel,
    boosted_tree_model,
    ridge_model,
)
from intarsia.autoschedule.measuring import (
    RecordToFile,
    ReplayMeasurer,
    ScheduleMeasurer,
    load_records,
)
from intarsia.autoschedule.policy import PolicyOptions, SketchPolicy, TuningOptions, neighbours
from intarsia.autoschedule.population import replay_program
from intarsia.autoschedule.scheduler import ScheduledTask, SchedulerOptions, TaskScheduler
from intarsia.autoschedule.sketch import CustomSketchRule, generate_sketches
from intarsia.autoschedule.task import SearchTask
from intarsia.measure.measure_result import MeasureResult
from intarsia.native.loop_state import LoopState
from intarsia.native.loop_state.record import Record, RecordResult

pytestmark = pytest.mark.quick_tests(14)

TASK = task_of(matmul(16, 16, 16))
QUICK = PolicyOptions(
    sample_init_min_population=8,
    evolutionary_search_population=16,
    evolutionary_search_num_iters=1,
    descent_share=0.0,
    finalists=0,
)
"""A search that is soon done."""


def guess(state: LoopState) -> float:
    return 1 / draft_seconds(state)


def policy_of(
    measurer: FakeMeasurer,
    options: PolicyOptions = QUICK,
    seeds: Sequence[LoopState] = (),
    seed: int = 0,
    task: SearchTask = TASK,
    model: FunctionModel | None = None,
    **given: object,
) -> SketchPolicy:
    chosen = FunctionModel(guess) if model is None else model
    return SketchPolicy(task, chosen, measurer, options, None, Random(seed), seeds, **given)  # type: ignore[arg-type]


def slow_seed() -> LoopState:
    return LoopState.initial(TASK.dag)


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("model", ["random", "ridge", "trees"])
def test_the_usual_models_search(model: str) -> None:
    """Upstream's sketch_search_policy_basic and _xgbmodel."""
    before = RandomModel(np.random.default_rng(0))
    models: dict[str, CostModel] = {
        "random": before,
        "ridge": ridge_model(before, 20),
        "trees": boosted_tree_model(before, 20),
    }
    measurer = FakeMeasurer()
    policy = SketchPolicy(TASK, models[model], measurer, QUICK, rng=Random(0))
    found = policy.search(TuningOptions(48, num_measures_per_round=16))
    assert found is not None
    assert policy.trials == len(measurer.measured) == 48
    assert draft_seconds(found) == policy.best_cost == min(map(draft_seconds, measurer.measured))


@pytest.mark.parametrize("make", [zero_rank_compute, zero_rank_reduce])
def test_zero_rank_results_are_searched(make: object) -> None:
    """Upstream's sketch_search_policy_zero_rank."""
    task = task_of(make())  # type: ignore[operator]  # makers of workloads
    assert (
        policy_of(FakeMeasurer(), task=task).search(TuningOptions(10, num_measures_per_round=5)) is not None
    )


def test_custom_sketches_are_searched() -> None:
    """Upstream's sketch_search_policy_custom_sketch."""
    rule = CustomSketchRule(
        lambda context, state, stage: 2 if stage == 2 else 0,
        lambda context, state, stage: [(state.split(stage, "i", [None]), stage - 1)],
    )
    sketches = generate_sketches(TASK, custom=[rule])
    measurer = FakeMeasurer()
    policy = policy_of(measurer, sketches=sketches)
    assert policy.sketches == sketches
    policy.search(TuningOptions(8, num_measures_per_round=4))
    assert measurer.measured
    assert all("j.0" not in state.text and "C.local" not in state.text for state in measurer.measured)


def test_every_state_is_legal_and_none_is_measured_twice() -> None:
    measurer = FakeMeasurer(failing(4))
    policy_of(measurer, descending(0.25), [slow_seed()]).search(TuningOptions(80, num_measures_per_round=10))
    texts = [state.text for state in measurer.measured]
    assert len(texts) == 80
    assert len(set(texts)) == 80
    for state in measurer.measured:
        assert replay_program(TASK.dag, state.transform_steps) == state


@pytest.mark.slow
def test_a_seed_decides_everything() -> None:
    def texts(seed: int) -> list[str]:
        measurer = FakeMeasurer(failing(5))
        model = ridge_model(DraftModel(SMALL_MACHINE), 10)
        options = PolicyOptions(
            sample_init_min_population=8, evolutionary_search_population=16, evolutionary_search_num_iters=1
        )
        policy = SketchPolicy(
            TASK, model, measurer, options, rng=Random(seed), draft=DraftModel(SMALL_MACHINE)
        )
        policy.search(TuningOptions(40, num_measures_per_round=10))
        return [state.text for state in measurer.measured]

    assert texts(3) == texts(3)
    assert texts(3) != texts(4)


def test_one_trial_measures_nothing() -> None:
    measurer, model = FakeMeasurer(), FunctionModel(guess)
    policy = policy_of(measurer, model=model)
    found = policy.search(TuningOptions(1))
    assert measurer.rounds == []
    assert found is not None
    assert draft_seconds(found) == min(map(draft_seconds, model.asked))


def test_one_trial_keeps_to_what_was_measured() -> None:
    policy = policy_of(FakeMeasurer())
    policy.preload([record(slow_seed(), 1.0)])
    assert policy.search(TuningOptions(0)) == slow_seed()


def test_seeds_are_measured_before_anything_else() -> None:
    other = slow_seed().parallel("C", 0)
    measurer = FakeMeasurer()
    policy_of(measurer, seeds=[slow_seed(), other]).tune_round(8)
    assert measurer.rounds[0][:2] == (slow_seed(), other)
    assert len(measurer.rounds[0]) == 8
    one = FakeMeasurer()
    policy = policy_of(one, seeds=[slow_seed(), other])
    policy.tune_round(1)
    policy.tune_round(1)
    assert one.rounds == [(slow_seed(),), (other,)]


def test_mutations_start_from_seeds() -> None:
    """Without sketches all programs come from the seed, whose loops no sketch has."""
    seed = slow_seed().split("C", "j", [4]).reorder("C", ["j.0", "k", "i", "j.1"])
    measurer = FakeMeasurer()
    policy_of(measurer, seeds=[seed], sketches=()).tune_round(4)
    assert len(measurer.measured) > 1
    assert all(state.stages[2].iters[1].name == "k" for state in measurer.measured)


def test_a_seed_that_failed_is_not_bred_from() -> None:
    seed = slow_seed().split("C", "j", [4])
    measurer = FakeMeasurer(lambda _: -1.0)
    policy = policy_of(measurer, seeds=[seed], sketches=())
    policy.tune_round(1)
    assert policy.tune_round(4) == []


def test_the_result_is_never_slower_than_the_first_seed() -> None:
    """Among equals it is the seed."""
    policy = policy_of(FakeMeasurer(lambda _: 1.0), seeds=[slow_seed()])
    assert policy.search(TuningOptions(16, num_measures_per_round=8)) == slow_seed()
    late = policy_of(FakeMeasurer(lambda _: 1.0), seeds=[slow_seed()])
    late.preload([record(slow_seed().parallel("C", 0), 1.0)])
    assert late.best_state != slow_seed()
    late.tune_round(4)
    assert late.best_state == slow_seed()


def test_the_best_are_measured_again_with_the_seed() -> None:
    """What won by luck loses: here each costs twice as much the second time, but for the seed."""
    measurer = FakeMeasurer(
        lambda state: 1.5 if state == slow_seed() else 1.0,
        again=lambda state: 1.5 if state == slow_seed() else 2.0,
    )
    policy = policy_of(measurer, replace(QUICK, finalists=3), [slow_seed()])
    assert policy.search(TuningOptions(16, num_measures_per_round=8)) == slow_seed()
    assert policy.best_cost == 1.5
    (contest,) = measurer.contests
    assert len(contest) == 4
    assert contest[-1] == slow_seed()
    assert policy.trials == 16


def test_without_finalists_nothing_is_measured_again() -> None:
    measurer = FakeMeasurer()
    policy_of(measurer, seeds=[slow_seed()]).search(TuningOptions(8, num_measures_per_round=8))
    assert measurer.contests == []


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize(
    ("patience", "trials"),
    [(None, 80), (100, 80), (20, 32), (15, 24), (0, 8)],
)
def test_early_stopping(patience: int | None, trials: int) -> None:
    """The fifth is the best, so that it ends after the round in which more than so many followed it."""
    costs = iter([5.0, 4.0, 3.0, 2.0, 1.0] + [9.0] * 100)
    policy = policy_of(FakeMeasurer(lambda _: next(costs)))
    policy.search(TuningOptions(80, early_stopping=patience, num_measures_per_round=8))
    assert policy.trials == trials


def test_it_does_not_stop_early_while_nothing_works() -> None:
    policy = policy_of(FakeMeasurer(lambda _: -1.0))
    assert policy.search(TuningOptions(40, early_stopping=0, num_measures_per_round=8)) is None
    assert policy.trials == 40
    assert policy.best_cost == inf


def test_time_and_a_question_end_it() -> None:
    clock = iter(range(1000))
    policy = policy_of(FakeMeasurer(), clock=lambda: float(next(clock)))
    policy.search(TuningOptions(80, num_measures_per_round=8, seconds=10.0))
    assert 0 < policy.trials < 80
    asked = iter([False, False, True])
    stopped = policy_of(FakeMeasurer())
    stopped.search(TuningOptions(80, num_measures_per_round=8, should_stop=lambda: next(asked)))
    assert stopped.trials == 16


@pytest.mark.parametrize("retries", [0, 1, 3])
def test_a_search_that_finds_nothing_is_repeated(retries: int) -> None:
    options = PolicyOptions(
        eps_greedy=0.0,
        retry_search_one_round_on_empty=retries,
        sample_init_min_population=4,
        evolutionary_search_num_iters=0,
    )
    model = FunctionModel(lambda _: -inf)
    assert policy_of(FakeMeasurer(), options, model=model).tune_round(4) == []
    assert len(model.asked) == 4 * (1 + retries)


def test_an_exhausted_space_ends_the_search() -> None:
    """Loops as declared have nothing to mutate, and without sketches there is nothing else."""
    measurer = FakeMeasurer()
    policy = policy_of(measurer, seeds=[slow_seed()], sketches=())
    assert policy.search(TuningOptions(500, num_measures_per_round=8)) == slow_seed()
    assert measurer.rounds == [(slow_seed(),)]
    assert policy.tune_round(8) == []


def test_failures_are_taught_as_failures() -> None:
    model = FunctionModel(guess)
    measurer = FakeMeasurer(failing(2))
    policy = policy_of(measurer, model=model)
    costs = policy.tune_round(16)
    assert [cost for _, cost in model.taught] == costs
    assert [state for state, _ in model.taught] == measurer.measured
    assert inf in costs
    assert min(costs) == policy.best_cost < inf


def test_the_model_learns_after_measuring_and_before_the_next_search() -> None:
    events: list[str] = []

    class Model(FunctionModel):
        def update(self, task: SearchTask, states: Sequence[LoopState], costs: Sequence[float]) -> None:
            events.append("update")

        def predict(self, task: SearchTask, states: Sequence[LoopState]) -> np.ndarray:
            events.append("predict")
            return super().predict(task, states)

    class Measurer(FakeMeasurer):
        def measure(self, task: SearchTask, states: Sequence[LoopState]) -> list[MeasureResult]:
            events.append("measure")
            return super().measure(task, states)

    policy = policy_of(Measurer(), model=Model(guess))
    policy.tune_round(4)
    policy.tune_round(4)
    rounds = [event for place, event in enumerate(events) if events[place - 1] != event or not place]
    assert rounds == ["predict", "measure", "update"] * 2


def test_what_was_measured_is_told() -> None:
    told: list[tuple[LoopState, float]] = []

    def on_measured(task: SearchTask, states: Sequence[LoopState], results: Sequence[MeasureResult]) -> None:
        told.extend(zip(states, (each.cost for each in results), strict=True))

    measurer = FakeMeasurer()
    policy_of(measurer, on_measured=[on_measured]).search(TuningOptions(12, num_measures_per_round=4))
    assert [state for state, _ in told] == measurer.measured
    assert [cost for _, cost in told] == [draft_seconds(state) for state, _ in told]


def record(state: LoopState, cost: float, error_no: int = 0, task: SearchTask = TASK) -> Record:
    costs = () if error_no else (cost,)
    return Record(task.record_task, state.transform_steps, RecordResult(costs, error_no, 0.1, 0))


def test_preloaded_states_are_not_measured_again() -> None:
    """A run that goes on from the log of one that was killed: what the log has is known, failures too."""
    measurer = FakeMeasurer(failing(3))
    first = policy_of(measurer)
    first.tune_round(16)
    failed = [state for state in measurer.measured if failing(3)(state) < 0]
    assert failed
    log = [record(state, failing(3)(state), 4 if failing(3)(state) < 0 else 0) for state in measurer.measured]
    again, model = FakeMeasurer(failing(3)), FunctionModel(guess)
    policy = policy_of(again, model=model)
    assert policy.preload(log) == 16
    assert (policy.trials, policy.best_cost) == (16, first.best_cost)
    assert policy.best_state == first.best_state
    assert len(model.taught) == 16
    assert sum(cost == inf for _, cost in model.taught) == len(failed)
    policy.tune_round(16)
    assert again.measured
    assert not set(measurer.measured) & set(again.measured)


def test_a_model_that_knows_the_log_is_not_taught_again() -> None:
    model = FunctionModel(guess)
    policy = policy_of(FakeMeasurer(), model=model)
    assert policy.preload([record(slow_seed(), 1.0)], teach=False) == 1
    assert model.taught == []


def test_a_preloaded_seed_is_not_measured_again() -> None:
    measurer = FakeMeasurer()
    policy = policy_of(measurer, seeds=[slow_seed()])
    policy.preload([record(slow_seed(), 1.0)])
    policy.tune_round(4)
    assert slow_seed() not in measurer.measured


def test_a_share_of_random_programs_is_measured() -> None:
    """Those that the model would never choose: it likes the slow ones."""
    model = FunctionModel(draft_seconds)
    measurer = FakeMeasurer()
    options = replace(QUICK, eps_greedy=0.5)
    policy_of(measurer, options, model=model).tune_round(8)
    ranked = sorted(model.asked, key=draft_seconds, reverse=True)
    greedy = list(dict.fromkeys(ranked))[:4]
    assert [draft_seconds(state) for state in measurer.measured[:4]] == [
        draft_seconds(state) for state in greedy
    ]
    assert set(measurer.measured[4:]) <= set(model.asked[:8])


def test_the_draft_is_asked_before_the_model() -> None:
    model, draft = FunctionModel(guess), FunctionModel(guess)
    options = replace(QUICK, draft_share=0.25)
    policy_of(FakeMeasurer(), options, model=model, draft=draft).tune_round(8)
    assert 0 < len(model.asked) < len(draft.asked) / 3
    off = FunctionModel(guess)
    policy_of(FakeMeasurer(), replace(QUICK, draft_share=1.0), draft=off).tune_round(8)
    assert off.asked == []
    assert draft.taught == []


def descending(share: float) -> PolicyOptions:
    return replace(QUICK, descent_share=share, descent_batch=4)


@pytest.mark.slow
def test_the_last_part_walks_to_neighbours() -> None:
    off, on = FakeMeasurer(), FakeMeasurer()
    policy_of(off, descending(0.0)).search(TuningOptions(40, num_measures_per_round=16))
    policy_of(on, descending(0.5)).search(TuningOptions(40, num_measures_per_round=16))
    assert [len(states) for states in off.rounds] == [16, 16, 8]
    assert [len(states) for states in on.rounds[:4]] == [16, 4, 4, 4]
    assert len(on.measured) == 40
    assert on.rounds[:2] == [off.rounds[0], off.rounds[1][:4]]
    best = min((state for states in on.rounds[:2] for state in states), key=draft_seconds)
    assert set(on.rounds[2]) <= set(neighbours(TASK, best))
    assert min(map(draft_seconds, on.measured)) < draft_seconds(best)


def test_where_no_neighbour_is_better_the_search_goes_on() -> None:
    """The first is the best, so that its only neighbour is measured, and then others."""
    costs = iter([1.0] + [2.0] * 1000)
    seed = slow_seed().parallel("C", 0)
    (neighbour,) = neighbours(TASK, seed)
    measurer = FakeMeasurer(lambda _: next(costs))
    policy_of(measurer, descending(0.9), [seed]).search(TuningOptions(60, num_measures_per_round=6))
    assert neighbour not in measurer.rounds[0]
    assert measurer.rounds[0][0] == seed
    assert measurer.rounds[1] == (neighbour,)
    assert len(measurer.rounds[2]) > 1
    assert not set(measurer.rounds[2]) & {seed, neighbour}


def test_a_round_of_a_scheduler_has_a_share_of_neighbours() -> None:
    measurer = FakeMeasurer()
    policy = policy_of(measurer, descending(0.25))
    policy.tune_round(16)
    best = policy.best_state
    assert best is not None
    policy.tune_round(16)
    near = {state.text for state in neighbours(TASK, best)}
    assert all(state.text in near for state in measurer.rounds[1][-4:])
    assert len(measurer.rounds[1]) == 16


def test_a_task_scheduler_tunes_policies() -> None:
    tasks = [TASK, task_of(matmul(8, 8, 8))]
    policies = [policy_of(FakeMeasurer(failing(6)), task=task) for task in tasks]
    scheduled = [ScheduledTask.of(policy, task) for policy, task in zip(policies, tasks, strict=True)]
    scheduler = TaskScheduler(scheduled, SchedulerOptions(trials_per_round=8))
    scheduler.tune(40)
    assert sum(policy.trials for policy in policies) == scheduler.trials == 40
    assert [each.best for each in scheduler.progress] == [policy.best_cost for policy in policies]


@pytest.mark.slow
def test_the_log_of_a_run_replays_to_the_same_decisions(tmp_path: Path) -> None:
    """Without hardware: what is measured, in which order, what is measured again, and what wins."""

    def run(measurer: ScheduleMeasurer, log: Path) -> tuple[LoopState | None, tuple[Record, ...]]:
        model = ridge_model(RandomModel(np.random.default_rng(0)), 10)
        options = replace(QUICK, descent_share=0.25, finalists=4)
        told = [RecordToFile(log)]
        policy = SketchPolicy(
            TASK, model, measurer, options, rng=Random(0), seeds=[slow_seed()], on_measured=told
        )
        return policy.search(TuningOptions(32, num_measures_per_round=8)), load_records(log)

    first = run(
        FakeMeasurer(failing(5), again=lambda state: 1.0 / draft_seconds(state)), tmp_path / "first.json"
    )
    again = run(ReplayMeasurer(first[1]), tmp_path / "again.json")
    assert len(first[1]) > 32
    assert [(each.steps, each.result.costs) for each in again[1]] == [
        (each.steps, each.result.costs) for each in first[1]
    ]
    assert again[0] == first[0]
