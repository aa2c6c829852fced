"""Sizes of threads, tiles and copies: limits, small spaces as a whole, and what a GPU cannot launch."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from tests.gpu_schedules import FAMILIES, batched_product, chain, check_schedule, gpu_task, reduction
from tests.native_workloads import matmul

from intarsia.autoschedule.cost_model import StaticGpuModel
from intarsia.autoschedule.mutation import mutate
from intarsia.autoschedule.mutation.mutate_thread_sizes import MutateThreadSizes
from intarsia.autoschedule.policy import neighbours
from intarsia.autoschedule.policy.gpu_policy import least_static_cost
from intarsia.autoschedule.policy.policy_options import PolicyOptions
from intarsia.autoschedule.population import replay_program, sample_initial_population, sample_program
from intarsia.autoschedule.population.gpu import ThreadSizes, every_history, every_program, is_launchable
from intarsia.autoschedule.population.gpu.open_splits import splits_of
from intarsia.autoschedule.sketch import generate_sketches
from intarsia.autoschedule.task import SearchTask, SpaceOptions
from intarsia.ir import DType
from intarsia.native.gpu.default_gpu_state import default_gpu_state
from intarsia.native.gpu.static_cost import FACTS
from intarsia.native.loop_state import IteratorAnnotation, LoopState
from intarsia.native.loop_state.steps import TransformStep

MODEL = StaticGpuModel(FACTS["sm_80"])
FEW = PolicyOptions(
    sample_init_min_population=4, evolutionary_search_population=4, evolutionary_search_num_iters=1
)


def _replayed(task: SearchTask, steps: Sequence[TransformStep]) -> LoopState:
    program = replay_program(task.dag, steps)
    assert program is not None
    return program


def test_parts_of_splits_are_told_from_each_other() -> None:
    *_, sketch = generate_sketches(gpu_task(matmul(64, 64, 64)))
    rows, columns, depth, *copies = splits_of(sketch)
    kinds = ("blockIdx.x", "vthread", "threadIdx.x", "unroll", "unroll")
    for split in (rows, columns):
        assert tuple(each.keyword for each in split.annotations) == kinds
        assert not split.is_reduced
    assert depth.is_reduced
    assert [split.annotations[-1] for split in copies] == [IteratorAnnotation.VECTORIZE] * 2
    assert [split.extent for split in copies] == [None, None]


def test_partial_results_and_their_sums_have_at_most_1024_threads_together() -> None:
    task = gpu_task(reduction((4096, 4096), 1))
    sketch = next(each for each in generate_sketches(task) if "Y.rf" in str(each))
    sizes = ThreadSizes(sketch, task.hardware)
    assert [split.is_shared for split in sizes.splits] == [True, False]
    assert max(results for (results,) in sizes.choices(1, [(256,)])) == 4
    assert (1024,) in list(sizes.choices(0, []))


def test_every_program_of_a_small_space_is_right_and_no_other_is_sampled() -> None:
    task = gpu_task(chain((3, 4)))
    (sketch,) = generate_sketches(task)
    programs = {state.text: state for state in every_program(task, sketch)}
    assert 10 < len(programs) <= len(list(every_history(task, sketch)))
    for state in list(programs.values())[::5]:
        check_schedule(task, state, is_compiled=False)
    sampled = {sample_program(task, sketch, Random(seed), SpaceOptions()) for seed in range(20)}
    assert {state.text for state in sampled if state is not None} <= programs.keys()


def test_the_least_static_cost_of_a_small_space_is_found() -> None:
    task = gpu_task(chain((3, 4)))
    (sketch,) = generate_sketches(task)
    every = [default_gpu_state(task.dag), *every_program(task, sketch)]
    found = MODEL.predict(task, [least_static_cost(task)])
    assert found[0] == MODEL.predict(task, every).max()


@pytest.mark.slow  # seconds: two searches
def test_a_search_without_a_gpu_never_costs_more_than_the_rules() -> None:
    for seed, make in enumerate((FAMILIES["softmax"], FAMILIES["product"])):
        task = gpu_task(make(Random(seed)))
        found = least_static_cost(task, options=FEW, seed=seed)
        scores = MODEL.predict(task, [found, default_gpu_state(task.dag)])
        assert scores[0] >= scores[1]


def test_a_program_that_needs_too_much_is_not_launched() -> None:
    task = gpu_task(matmul(256, 256, 256))
    *_, sketch = generate_sketches(task)
    sizes = ThreadSizes(sketch, task.hardware)
    threads, step = (1, 8, 2, 2), (4, 4)
    assert is_launchable(task, _replayed(task, sizes.steps([threads, threads, step, (4,), (4,)])))
    for lengths, depth in (((1, 64, 1, 1), step), ((1, 8, 4, 2), (64, 8))):
        too_much = sizes.steps([lengths, lengths, depth, (4,), (4,)])
        assert not is_launchable(task, _replayed(task, too_much))


def test_mutated_and_neighbouring_sizes_keep_the_limits_of_all_splits() -> None:
    task, rng = gpu_task(matmul(25, 17, 29)), Random(3)
    *_, sketch = generate_sketches(task)
    sizes = ThreadSizes(sketch, task.hardware)
    rest = ((1, 29), (4,), (2,))
    assert sizes.allows(((1, 2, 16, 1), (2, 1, 1, 2), *rest))
    assert not sizes.allows(((1, 2, 16, 1), (3, 1, 1, 2), *rest))  # 96 results of a thread
    state = _replayed(task, sizes.steps(((1, 2, 16, 1), (2, 1, 1, 2), *rest)))
    changed = [MutateThreadSizes().apply(task, state, rng, SpaceOptions()) for _ in range(40)]
    for other in (*changed, *neighbours(task, state)):
        if other is not None:
            after = ThreadSizes(other, task.hardware)
            assert after.allows(after.given)
    assert any(other is not None for other in changed)


def test_copies_are_at_most_16_bytes_wide() -> None:
    for dtype, most in ((DType.FLOAT32, 4), (DType.FLOAT16, 8)):
        task = gpu_task(batched_product((), 64, 64, 64, dtype))
        sketch = generate_sketches(task)[-1]
        sizes = ThreadSizes(sketch, task.hardware)
        last = len(sizes.splits) - 1
        given = [next(sizes.choices(0, []))]
        while len(given) < last:
            given.append(next(sizes.choices(len(given), given)))
        assert max(width for (width,) in sizes.choices(last, given)) == most


@pytest.mark.slow  # seconds: all neighbours are lowered
def test_mutations_and_neighbours_are_programs_that_compute_the_same() -> None:
    task, rng = gpu_task(batched_product((2,), 5, 6, 4)), Random(0)
    (state,) = sample_initial_population(task, generate_sketches(task), 1, rng)
    mutated = [each for each in (mutate(task, state, rng) for _ in range(6)) if each is not None]
    assert any(each.text != state.text for each in mutated)
    around = neighbours(task, state)
    assert state.text not in {each.text for each in around}
    for each in (mutated[-1], around[0], around[-1]):
        assert is_launchable(task, each)
        check_schedule(task, each, is_compiled=False)


def test_the_static_model_prefers_wide_tiles_and_refuses_what_no_gpu_launches() -> None:
    task = gpu_task(matmul(512, 512, 512))
    *_, sketch = generate_sketches(task)
    sizes = ThreadSizes(sketch, task.hardware)
    wide, narrow, large = (
        _replayed(task, sizes.steps([lengths, lengths, (4, 4), (width,), (width,)]))
        for lengths, width in (((1, 8, 1, 4), 4), ((1, 8, 1, 1), 1), ((1, 64, 1, 1), 1))
    )
    scores = MODEL.predict(task, [wide, narrow, large])
    assert scores[0] > 1.5 * scores[1]
    assert scores[2] == -np.inf
    MODEL.update(task, [wide], [1.0])
    assert MODEL.predict(task, [wide])[0] == scores[0]


def test_a_gpu_is_told_by_its_thread_blocks() -> None:
    hardware = gpu_task(matmul()).hardware
    assert hardware.is_gpu
    assert not replace(hardware, max_threads_per_block=0).is_gpu
    assert hardware.numbers == (108, 16, 128, 99 * 1024, 1020, 1024, 8, 32)
