"""What a search does whatever is searched, and however measuring ends."""

from functools import cache
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.every_program import every_program
from tests.native_workloads import matmul
from tests.schedule_measurers import SMALL_MACHINE, FakeMeasurer, draft_seconds, failing
from tests.searched_programs import MAKERS, small_sketches, small_task, task_of

from intarsia.autoschedule.cost_model import DraftModel, RandomModel, ridge_model
from intarsia.autoschedule.policy import PolicyOptions, SketchPolicy, TuningOptions
from intarsia.autoschedule.population import replay_program
from intarsia.autoschedule.sketch import generate_sketches
from intarsia.autoschedule.task import SpaceOptions
from intarsia.native.loop_state import LoopState

NAMES = sorted(MAKERS.keys() - {"conv2d_winograd_nhwc"})
"""Computations of which a program is lowered in a few milliseconds."""
TINY = task_of(matmul(4, 4, 2))
SPACE = SpaceOptions(unroll_steps=(0, 16))


@pytest.mark.slow
@settings(max_examples=examples(20), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.sampled_from(NAMES),
    st.integers(0, 2**32),
    st.integers(2, 24),
    st.integers(1, 12),
    st.sampled_from([0.0, 0.3, 1.0]),
    st.sampled_from([0.0, 0.25, 1.0]),
    st.sampled_from([1, 2, 1000]),
)
def test_a_search_measures_legal_programs_once(
    name: str, seed: int, trials: int, each: int, eps: float, descent: float, failures: int
) -> None:
    task, measurer = small_task(name), FakeMeasurer(failing(failures))
    options = PolicyOptions(
        eps_greedy=eps,
        sample_init_min_population=6,
        evolutionary_search_population=10,
        evolutionary_search_num_iters=1,
        descent_share=descent,
        descent_batch=3,
    )
    model = ridge_model(RandomModel(np.random.default_rng(0)), 8)
    seeds = [LoopState.initial(task.dag)]
    policy = SketchPolicy(
        *(task, model, measurer, options, None, Random(seed), seeds, small_sketches(name)),
        draft=DraftModel(SMALL_MACHINE),
    )
    best = policy.search(TuningOptions(trials, num_measures_per_round=each))
    measured = measurer.measured
    assert measured[0] == LoopState.initial(task.dag)
    assert len({state.text for state in measured}) == len(measured) == policy.trials <= trials
    assert max(map(len, measurer.rounds)) <= each
    for state in measured:
        assert replay_program(task.dag, state.transform_steps) == state
    costs = [measurer.seconds(state) for state in measured]
    working = [cost for cost in costs if cost >= 0]
    assert (best is None) is (not working)
    if best is not None:
        assert measurer.seconds(best) == policy.best_cost == min(working)
        assert costs[0] < 0 or policy.best_cost <= costs[0]


@cache
def best_of_every_program() -> float:
    found = every_program(TINY, generate_sketches(TINY), SPACE)
    assert len(found) == 688
    return min(map(draft_seconds, found.values()))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_search_finds_the_best_of_a_small_space(seed: int) -> None:
    """Brute force says which it is; mutations may find better ones that sketches have not."""
    model = ridge_model(RandomModel(np.random.default_rng(seed)), 20)
    options = PolicyOptions(sample_init_min_population=20, evolutionary_search_population=30)
    measurer = FakeMeasurer()
    policy = SketchPolicy(TINY, model, measurer, options, SPACE, Random(seed))
    policy.search(TuningOptions(250, num_measures_per_round=50))
    assert policy.trials <= 250
    assert policy.best_cost <= best_of_every_program()
