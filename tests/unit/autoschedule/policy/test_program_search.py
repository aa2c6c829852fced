from collections.abc import Sequence
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from tests.native_workloads import matmul
from tests.schedule_measurers import SMALL_MACHINE, FunctionModel, draft_seconds
from tests.searched_programs import task_of

from intarsia.autoschedule.cost_model import DraftModel, RandomModel, Scores, ridge_model
from intarsia.autoschedule.policy import MeasuredStates, PolicyOptions
from intarsia.autoschedule.policy.program_search import ProgramSearch
from intarsia.autoschedule.policy.scoring_model import scoring_model
from intarsia.autoschedule.population import sample_initial_population
from intarsia.autoschedule.sketch import generate_sketches
from intarsia.autoschedule.task import SearchTask, SpaceOptions
from intarsia.native.loop_state import LoopState

TASK = task_of(matmul(16, 16, 16))
SKETCHES = generate_sketches(TASK)
QUICK = PolicyOptions(sample_init_min_population=6, evolutionary_search_population=10)


def sampled(count: int, seed: int = 1) -> tuple[LoopState, ...]:
    return sample_initial_population(TASK, SKETCHES, count, Random(seed))


def search(model: FunctionModel | RandomModel, options: PolicyOptions = QUICK) -> ProgramSearch:
    return ProgramSearch(TASK, model, options, SpaceOptions(), Random(0), SKETCHES)


def test_the_best_measured_programs_are_bred_from() -> None:
    """As many as a fifth of a generation, and without failures."""
    options = replace(QUICK, sample_init_use_measured_ratio=0.3, evolutionary_search_num_iters=0)
    known, states = MeasuredStates(), sampled(8)
    for place, state in enumerate(states):
        known.add(state, float("inf") if place == 0 else 10.0 - place)
    model = FunctionModel(lambda _: 1.0)
    search(model, options).find(4, (), known)
    assert model.asked[6:] == [states[7], states[6], states[5]]


def test_seeds_are_bred_from() -> None:
    model = FunctionModel(lambda _: 1.0)
    seed = LoopState.initial(TASK.dag)
    found = search(model, replace(QUICK, evolutionary_search_num_iters=0)).find(20, [seed], MeasuredStates())
    assert model.asked[6:] == [seed]
    assert seed in found
    assert seed not in search(model).find(20, [seed], MeasuredStates(), taken=[seed])


def test_no_program_is_found_that_is_known() -> None:
    first = search(FunctionModel(lambda state: 1 / draft_seconds(state))).find(8, (), MeasuredStates())
    known = MeasuredStates()
    for state in first[:4]:
        known.add(state, 1.0)
    again = search(FunctionModel(lambda state: 1 / draft_seconds(state))).find(8, (), known, first[4:])
    assert len(again) == 8
    assert not set(first) & set(again)


@pytest.mark.parametrize(("iterations", "asked"), [(0, 1), (1, 2), (2, 3), (9, 3)])
def test_a_model_that_knows_nothing_is_asked_for_few_generations(iterations: int, asked: int) -> None:
    class Counting(RandomModel):
        __slots__ = ()
        count = 0

        def predict(self, task: SearchTask, states: Sequence[LoopState]) -> Scores:
            Counting.count += 1
            return super().predict(task, states)

    options = replace(QUICK, evolutionary_search_num_iters=iterations)
    search(Counting(np.random.default_rng(0)), options).find(4, (), MeasuredStates())
    assert Counting.count == asked


def test_a_learned_model_speaks_when_it_is_warm() -> None:
    before = DraftModel(SMALL_MACHINE)
    model = ridge_model(before, warm_up=5)
    assert scoring_model(model) is before
    assert scoring_model(ridge_model(ridge_model(before))) is before
    states = sampled(5)
    model.update(TASK, states, [draft_seconds(state) for state in states])
    assert scoring_model(model) is model
    assert scoring_model(before) is before


def test_the_most_promising_program_is_the_best_that_was_seen() -> None:
    model = FunctionModel(lambda state: 1 / draft_seconds(state))
    found = search(model).find_most_promising((), MeasuredStates())
    assert found is not None
    assert draft_seconds(found) == min(map(draft_seconds, model.asked))
    nothing = ProgramSearch(TASK, model, QUICK, SpaceOptions(), Random(0), ())
    assert nothing.find_most_promising((), MeasuredStates()) is None
