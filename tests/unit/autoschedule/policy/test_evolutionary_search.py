"""The reference's scenarios, and what a search never does."""

from collections.abc import Callable
from math import inf
from random import Random

import pytest
from tests.native_workloads import matmul
from tests.schedule_measurers import FunctionModel, draft_seconds
from tests.searched_programs import small_sketches, small_task, task_of

from intarsia.autoschedule.policy import CandidateScores, PolicyOptions, evolutionary_search
from intarsia.autoschedule.population import replay_program, sample_initial_population, with_bounds
from intarsia.autoschedule.sketch import generate_sketches
from intarsia.autoschedule.task import SpaceOptions
from intarsia.native.loop_state import LoopState

pytestmark = pytest.mark.quick_tests(5)

TASK = task_of(matmul(10, 10, 4))
SKETCHES = generate_sketches(TASK)
SMALL = PolicyOptions(evolutionary_search_population=30)


def sampled(count: int = 30, seed: int = 0) -> tuple[LoopState, ...]:
    return sample_initial_population(TASK, SKETCHES, count, Random(seed))


def has_inner_reduction_of_two(state: LoopState) -> bool:
    return any("k.1 (0,2)" in line for line in state.text.splitlines())


def has_one_parallel_loop(state: LoopState) -> bool:
    return any("parallel i.0@ (0,10)" in line for line in state.text.splitlines())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("is_good", "space"),
    [
        (has_inner_reduction_of_two, SpaceOptions()),
        (has_one_parallel_loop, SpaceOptions(parallel_weight=0.5)),
    ],
    ids=["mutate_tile_size", "mutate_parallel"],
)
def test_bad_programs_lead_to_good_ones(is_good: Callable[[LoopState], bool], space: SpaceOptions) -> None:
    """Upstream's tests: a model gives the good ones 1 and all others 0; there are only bad ones at first."""
    bad = [state for state in sampled(50) if not is_good(state)]
    scores = CandidateScores(TASK, FunctionModel(lambda state: float(is_good(state))))
    found = evolutionary_search(TASK, bad, 50, scores, Random(0), PolicyOptions(), space)
    assert is_good(found[0])


def test_scores_decide_the_order_of_what_is_found() -> None:
    model = FunctionModel(lambda state: 1 / draft_seconds(state))
    found = evolutionary_search(TASK, sampled(), 20, CandidateScores(TASK, model), Random(1), SMALL)
    costs = [draft_seconds(state) for state in found]
    assert len(found) == 20
    assert len({state.text for state in found}) == 20
    assert costs == sorted(costs)
    everything = {state.text: draft_seconds(state) for state in model.asked}
    assert costs == sorted(everything.values())[:20]


def test_generations_get_better() -> None:
    model = FunctionModel(lambda state: 1 / draft_seconds(state))
    (found,) = evolutionary_search(TASK, sampled(), 1, CandidateScores(TASK, model), Random(1), SMALL)
    assert draft_seconds(found) < min(map(draft_seconds, sampled()))


def test_what_was_measured_is_bred_from_and_not_found() -> None:
    first = sampled(5)
    known = {state.text for state in first}
    scores = CandidateScores(TASK, FunctionModel(lambda _: 1.0))
    found = evolutionary_search(TASK, first, 50, scores, Random(0), SMALL, measured=known)
    assert found
    assert not known & {state.text for state in found}


def test_every_program_that_is_found_is_legal() -> None:
    scores = CandidateScores(TASK, FunctionModel(lambda _: 1.0))
    for state in evolutionary_search(TASK, sampled(), 100, scores, Random(3), SMALL):
        assert replay_program(TASK.dag, state.transform_steps) == state


@pytest.mark.parametrize("score", [0.0, -3.0])
def test_without_a_good_score_all_are_bred_from(score: float) -> None:
    """Upstream's scores of 0 give probabilities of 0/0, and everything comes from one program."""
    first = sampled(10)
    scores = CandidateScores(TASK, FunctionModel(lambda _: score))
    options = PolicyOptions(
        evolutionary_search_population=100,
        evolutionary_search_num_iters=1,
        evolutionary_search_mutation_prob=1.0,
    )
    space = SpaceOptions(tile_size_weight=0, compute_location_weight=0, parallel_weight=0)
    found = evolutionary_search(TASK, first, 1000, scores, Random(0), options, space)
    assert len(found) > 2 * len(first)
    children = {without_hints(state) for state in found if state not in first}
    assert children == {without_hints(state) for state in first}


def without_hints(state: LoopState) -> str:
    return "\n".join(line for line in state.text.splitlines() if "auto_unroll" not in line)


def test_nothing_left_is_no_error() -> None:
    scores = CandidateScores(TASK, FunctionModel(lambda _: -inf))
    assert evolutionary_search(TASK, sampled(5), 10, scores, Random(0), SMALL) == ()
    assert evolutionary_search(TASK, (), 10, scores, Random(0), SMALL) == ()


def test_a_space_without_mutations_ends() -> None:
    task, (sketch,) = small_task("max_pool2d"), small_sketches("max_pool2d")
    state = with_bounds(sketch)
    assert state is not None
    options = PolicyOptions(evolutionary_search_mutation_prob=1.0)
    model = FunctionModel(lambda _: 1.0)
    found = evolutionary_search(task, [state], 10, CandidateScores(task, model), Random(0), options)
    assert found == (state,)
    assert model.asked == [state]


def test_the_number_of_generations_is_one_more_than_the_iterations() -> None:
    """Each asks for what is new only: with copies alone that is nothing after the first."""
    for iterations in (0, 3):
        options = PolicyOptions(
            evolutionary_search_num_iters=iterations, evolutionary_search_mutation_prob=0.0
        )
        model = FunctionModel(lambda _: 1.0)
        found = evolutionary_search(TASK, sampled(6), 9, CandidateScores(TASK, model), Random(0), options)
        assert found == sampled(6)
        assert model.asked == list(sampled(6))
    grown = {}
    for iterations in (0, 1, 2):
        options = PolicyOptions(evolutionary_search_population=20, evolutionary_search_num_iters=iterations)
        model = FunctionModel(lambda _: 1.0)
        evolutionary_search(TASK, sampled(20), 9, CandidateScores(TASK, model), Random(0), options)
        grown[iterations] = len(model.asked)
    assert grown[0] == 20
    assert 20 < grown[1] <= 40
    assert grown[1] < grown[2] <= 60


@pytest.mark.slow
def test_a_seed_decides_everything() -> None:
    def texts(seed: int) -> list[str]:
        scores = CandidateScores(TASK, FunctionModel(lambda state: 1 / draft_seconds(state)))
        found = evolutionary_search(TASK, sampled(10), 30, scores, Random(seed), SMALL)
        return [state.text for state in found]

    assert texts(7) == texts(7)
    assert texts(7) != texts(8)
