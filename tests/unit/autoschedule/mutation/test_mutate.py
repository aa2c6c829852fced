from collections.abc import Callable
from random import Random

import pytest
from tests.native_workloads import matmul, softmax_nm
from tests.schedule_families import SMALL, program_task
from tests.searched_programs import small_sketches, small_task, task_of

from intarsia.autoschedule.mutation import CPU_MUTATION_RULES, mutate
from intarsia.autoschedule.mutation.mutate_auto_unroll import MutateAutoUnroll
from intarsia.autoschedule.mutation.mutate_compute_location import MutateComputeLocation
from intarsia.autoschedule.mutation.mutate_micro_kernel import MutateMicroKernel
from intarsia.autoschedule.mutation.mutate_parallel import MutateParallel
from intarsia.autoschedule.mutation.mutate_tile_size import MutateTileSize
from intarsia.autoschedule.population import replay_program, sample_initial_population
from intarsia.autoschedule.sketch import MicroKernelSketch, generate_sketches
from intarsia.autoschedule.task import SearchTask, SpaceOptions
from intarsia.native.loop_state import IteratorAnnotation, LoopState
from intarsia.native.loop_state.steps import (
    AnnotationStep,
    ComputeAtStep,
    FuseStep,
    PragmaStep,
    SplitStep,
)

pytestmark = pytest.mark.quick_tests(8, also=["test_micro_kernels_are_mutated_only_where_they_are_searched"])

OPTIONS = SpaceOptions()


def has_inner_reduction_of_two(state: LoopState) -> bool:
    """The reference's good state: k.1 counts twice."""
    return any("k.1 (0,2)" in line for line in str(state).splitlines())


def has_one_parallel_loop(state: LoopState) -> bool:
    """The reference's other good state: only i.0 is parallel, all of it."""
    return any("parallel i.0@ (0,10)" in line for line in str(state).splitlines())


def is_reached(
    task: SearchTask, is_good: Callable[[LoopState], bool], options: SpaceOptions, generations: int = 5
) -> bool:
    """Whether bad states lead to a good one; a model would give that one 1, and all others 0."""
    rng = Random(0)
    sampled = sample_initial_population(task, generate_sketches(task), 50, rng, options)
    population = [state for state in sampled if not is_good(state)]
    for _ in range(generations):
        drawn = (mutate(task, rng.choice(population), rng, options) for _ in range(200))
        population = [state for state in drawn if state is not None]
        if any(map(is_good, population)):
            return True
    return False


def test_tile_sizes_reach_what_a_model_wants() -> None:
    assert is_reached(task_of(matmul(10, 10, 4)), has_inner_reduction_of_two, OPTIONS)


def test_parallel_loops_reach_what_a_model_wants() -> None:
    options = SpaceOptions(parallel_weight=0.5)
    assert is_reached(task_of(matmul(10, 10, 4)), has_one_parallel_loop, options)


def test_a_factor_moves_between_two_lengths_of_one_split() -> None:
    task = task_of(matmul(64, 64, 64))
    rng = Random(1)
    for state in sample_initial_population(task, generate_sketches(task), 20, rng):
        after = MutateTileSize().apply(task, state, rng, OPTIONS)
        assert after is not None
        pairs = zip(state.transform_steps, after.transform_steps, strict=True)
        changed = [(old, new) for old, new in pairs if old != new]
        assert len(changed) == 1
        ((old, new),) = changed
        assert isinstance(old, SplitStep)
        assert isinstance(new, SplitStep)
        parts = [[64 // product(step.lengths), *step.lengths] for step in (old, new)]
        assert sum(one != other for one, other in zip(*parts, strict=True)) == 2
        assert product(tuple(parts[0])) == product(tuple(parts[1])) == 64


def product(lengths: tuple[int | None, ...]) -> int:
    found = 1
    for length in lengths:
        found *= length or 1
    return found


def test_innermost_lengths_stay_below_the_limit() -> None:
    options = SpaceOptions(max_innermost_split_factor=4)
    task = task_of(matmul(64, 64, 64))
    rng = Random(2)
    (state,) = sample_initial_population(task, generate_sketches(task), 1, rng, options)
    for _ in range(60):
        state = MutateTileSize().apply(task, state, rng, options) or state
        lengths = [step.lengths[-1] for step in state.transform_steps if isinstance(step, SplitStep)]
        assert max(length or 1 for length in lengths) <= 4


def test_nothing_is_split_so_nothing_moves() -> None:
    task, (sketch,) = small_task("max_pool2d"), small_sketches("max_pool2d")
    state = replay_program(task.dag, sketch.transform_steps)
    assert state is not None
    assert all(rule.apply(task, state, Random(0), OPTIONS) is None for rule in CPU_MUTATION_RULES)


def test_a_hint_becomes_another_one() -> None:
    task = task_of(matmul())
    rng = Random(0)
    (state,) = sample_initial_population(task, generate_sketches(task), 1, rng)
    (old,) = (step for step in state.transform_steps if isinstance(step, PragmaStep))
    for _ in range(20):
        after = MutateAutoUnroll().apply(task, state, rng, OPTIONS)
        assert after is not None
        (new,) = (step for step in after.transform_steps if isinstance(step, PragmaStep))
        assert new.pragma_type != old.pragma_type
    only = SpaceOptions(unroll_steps=(int(old.pragma_type.partition("$")[2]),))
    assert MutateAutoUnroll().apply(task, state, rng, only) is None


def test_a_stage_in_a_loop_comes_into_another_loop() -> None:
    """The loop's number is that before the loops behind it were fused."""
    task = task_of(softmax_nm(5, 7))
    before = LoopState.initial(task.dag).compute_at("expsum", "norm", 1)
    state = replay_program(task.dag, before.parallel("norm", 0).transform_steps)
    assert state is not None
    after = MutateComputeLocation().apply(task, state, Random(0), OPTIONS)
    assert after is not None
    (step,) = (step for step in after.transform_steps if isinstance(step, ComputeAtStep))
    assert (step.stage_id, step.target_stage_id, step.target_iter_id) == (3, 4, 0)
    assert MutateComputeLocation().weight(SpaceOptions(disable_change_compute_location=True)) == 0


def test_steps_behind_a_parallel_loop_follow_its_length() -> None:
    task = task_of(matmul(8, 8, 8))
    state = LoopState.initial(task.dag).split("C", "i", [2]).split("C", "j", [4])
    state = state.reorder("C", ["i.0", "j.0", "i.1", "j.1", "k"]).fuse("C", [0, 1]).parallel("C", 0)
    state = (
        state.pragma("C", 0, "auto_unroll_max_step$16")
        .annotate("C", 3, IteratorAnnotation.UNROLL)
        .fuse("C", [1, 2])
    )
    found = set()
    for seed in range(20):
        after = MutateParallel().apply(task, state, Random(seed), OPTIONS)
        if after is not None:
            steps = after.transform_steps
            fused = [step.fused_ids for step in steps if isinstance(step, FuseStep)]
            unrolled = [step.iter_id for step in steps if isinstance(step, AnnotationStep)][-1]
            found.add((*fused, unrolled))
            assert "unroll k (0,8)" in str(after)
    assert found == {((0,), (2, 3), 4)}  # with 3 or 4 loops, those to be fused later are gone


def test_a_single_parallel_loop_may_be_fused_with_others() -> None:
    task = task_of(matmul(8, 8, 8))
    state = LoopState.initial(task.dag).parallel("C", "i")
    after = MutateParallel().apply(task, state, Random(0), OPTIONS)
    assert "parallel i@j@ (0,64)" in str(after)


def test_a_seed_decides_which_program_comes() -> None:
    task = task_of(matmul(64, 64, 64))
    states = sample_initial_population(task, generate_sketches(task), 4, Random(0))
    texts = [[str(mutate(task, state, Random(5))) for state in states] for _ in range(2)]
    assert texts[0] == texts[1]


def test_weights_decide_what_is_drawn() -> None:
    task = task_of(matmul(64, 64, 64))
    rng = Random(0)
    (state,) = sample_initial_population(task, generate_sketches(task), 1, rng)
    only = SpaceOptions(tile_size_weight=0, compute_location_weight=0, parallel_weight=0)
    for _ in range(10):
        after = mutate(task, state, rng, only)
        assert after is not None
        pairs = zip(state.transform_steps, after.transform_steps, strict=True)
        assert [type(new) for old, new in pairs if new != old] == [PragmaStep]


def test_micro_kernels_are_mutated_only_where_they_are_searched() -> None:
    rule, task = MutateMicroKernel(), program_task("convolution")
    sketch = MicroKernelSketch.of_task(task, SMALL)
    assert sketch is not None
    assert sketch.default is not None
    assert rule.weight(OPTIONS) == 0
    assert rule.apply(task, sketch.default, Random(0), OPTIONS) is None
    searched = SpaceOptions(micro_kernels=SMALL, micro_kernel_weight=0.5)
    assert rule.weight(searched) == 0.5
    assert rule.apply(task, LoopState.initial(task.dag), Random(0), searched) is None


def test_a_micro_kernel_becomes_another_one_of_the_rule() -> None:
    task = program_task("convolution")
    sketch = MicroKernelSketch.of_task(task, SMALL)
    assert sketch is not None
    only = SpaceOptions(
        tile_size_weight=0.1,
        auto_unroll_weight=0,
        compute_location_weight=0,
        parallel_weight=0,
        micro_kernels=SMALL,
        micro_kernel_weight=99.9,
    )
    state, rng, seen = sketch.default, Random(0), set[str]()
    for _ in range(20):
        assert state is not None
        after = mutate(task, state, rng, only)
        if after is not None and sketch.family.choice_of(after) is not None:
            seen.add(after.text)
            state = after
    assert len(seen) > 10
