from random import Random

import pytest
from tests.native_workloads import conv2d_nchw_bn_relu, matmul, min_nm, softmax_nm
from tests.searched_programs import task_of

from intarsia.autoschedule.population import has_nested_parallel
from intarsia.autoschedule.population.change_compute_location import ChangeComputeLocation
from intarsia.autoschedule.population.compute_locations import compute_locations
from intarsia.autoschedule.population.fill_tile_size import FillTileSize
from intarsia.autoschedule.population.parallel import Parallel
from intarsia.autoschedule.population.unroll import Unroll
from intarsia.autoschedule.population.vectorization import Vectorization
from intarsia.autoschedule.sketch import generate_sketches
from intarsia.autoschedule.task import SearchTask, SpaceOptions
from intarsia.native import te
from intarsia.native.loop_state import ComputeAt, IteratorAnnotation, LoopState
from intarsia.native.loop_state.steps import SplitStep
from intarsia.native.lowering import infer_bound

OPTIONS = SpaceOptions()


def parallel_loops(state: LoopState) -> list[str]:
    return [
        loop.name
        for stage in state.stages
        for loop in stage.iters
        if loop.annotation is IteratorAnnotation.PARALLEL
    ]


def vector_loops(task: SearchTask, state: LoopState, options: SpaceOptions = OPTIONS) -> set[str]:
    """The vectorised loops of the last stage, over many draws."""
    found = set()
    for seed in range(40):
        after = Vectorization().apply(task, state, Random(seed), options)
        assert after is not None
        loop = after.stages[-1].iters[-1]
        if loop.annotation is IteratorAnnotation.VECTORIZE:
            found.add(loop.name)
    return found


def test_every_open_length_is_drawn_and_divides() -> None:
    task = task_of(matmul(48, 30, 7))
    for sketch in generate_sketches(task):
        state = FillTileSize().apply(task, sketch, Random(0), OPTIONS)
        assert state is not None
        assert state.concrete
        for step in state.transform_steps:
            if isinstance(step, SplitStep):
                left = step.extent or 0
                for length in step.lengths:
                    assert length is not None
                    assert left % length == 0
                    left //= length
                assert (step.lengths[-1] or 0) <= 64


def test_loops_with_few_divisors_get_tiles_with_a_rest_if_that_is_allowed() -> None:
    task = task_of(matmul(31, 1009, 61))
    sketch = generate_sketches(task)[0]
    for share, is_found in ((0.0, False), (1.0, True)):
        options = SpaceOptions(imperfect_share=share)
        states = [FillTileSize().apply(task, sketch, Random(seed), options) for seed in range(20)]
        lengths = {
            length
            for state in states
            if state is not None
            for step in state.transform_steps
            if isinstance(step, SplitStep)
            for length in step.lengths
        }
        assert (8 in lengths) is is_found


def test_lengths_given_are_kept() -> None:
    task = task_of(matmul(16, 16, 16))
    sketch = LoopState.initial(task.dag).split("C", "i", [4]).split("C", "j", [None])
    state = FillTileSize().apply(task, sketch, Random(3), OPTIONS)
    assert state is not None
    assert state["C"].iters[1].extent == 4


def test_what_reads_once_is_computed_inline_on_its_own_or_in_a_loop() -> None:
    """Padding has a branch; it may be inlined all the same."""
    task = task_of(conv2d_nchw_bn_relu())
    sketch = generate_sketches(task)[-1]
    places = set()
    for seed in range(60):
        filled = FillTileSize().apply(task, sketch, Random(seed), OPTIONS)
        assert filled is not None
        state = ChangeComputeLocation().apply(task, filled, Random(seed), OPTIONS)
        assert state is not None
        assert "None" not in str(state)
        places.add(state["padding"].compute_at)
    assert places == set(ComputeAt)


def test_places_can_be_left_as_they_are() -> None:
    task = task_of(softmax_nm())
    options = SpaceOptions(disable_change_compute_location=True)
    state = LoopState.initial(task.dag)
    assert ChangeComputeLocation().apply(task, state, Random(0), options) is state


def test_loops_of_a_reader_without_tiles_end_at_its_reductions() -> None:
    state = LoopState.initial(task_of(softmax_nm(5, 7)).dag)
    assert compute_locations(state, state.stage_id("exp")) == ()  # two readers, each on its own
    assert compute_locations(state, state.stage_id("expsum")) == ((4, 0), (4, 1))


def test_loops_of_one_iteration_are_no_places() -> None:
    state = LoopState.initial(task_of(conv2d_nchw_bn_relu()).dag)
    names = [state["conv"].iters[place].name for _, place in compute_locations(state, 1)]
    assert names == ["ff", "yy", "xx"]


def test_loops_around_the_reader_are_places_too() -> None:
    state = LoopState.initial(task_of(softmax_nm(5, 7)).dag)
    inside = state.compute_at("expsum", "norm", 0).compute_at("exp", "norm", 0)
    bounded = infer_bound(inside.initial_dag, inside)
    assert compute_locations(bounded, bounded.stage_id("exp")) == ((4, 0),)
    assert compute_locations(bounded, bounded.stage_id("maxelem")) == ((2, 1),)


def test_outer_loops_are_parallel_until_there_are_enough_iterations() -> None:
    task = task_of(matmul(8, 64, 4), cores=1)
    state = Parallel().apply(task, LoopState.initial(task.dag), Random(0), OPTIONS)
    assert state is not None
    assert parallel_loops(state) == ["i@j@"]
    wide = task_of(matmul(64, 64, 4), cores=1)
    state = Parallel().apply(wide, LoopState.initial(wide.dag), Random(0), OPTIONS)
    assert state is not None
    assert parallel_loops(state) == ["i"]


def test_a_sum_of_everything_is_not_parallel() -> None:
    task = task_of(min_nm(1, 64))
    state = Parallel().apply(task, LoopState.initial(task.dag), Random(0), OPTIONS)
    assert state is not None
    assert parallel_loops(state) == []


def test_where_outer_loops_count_once_what_is_inside_is_parallel_and_not_both() -> None:
    """B stands in the loop i of C, which counts once; the field made i parallel as well."""
    a = te.placeholder((1, 64), name="A")
    b = te.compute((1, 64), lambda i, j: a[i, j] * 2.0, name="B")
    c = te.compute((1, 64), lambda i, j: b[i, j] + 1.0, name="C")
    task = task_of((a, c))
    inside = LoopState.initial(task.dag).compute_at("B", "C", "i")
    state = Parallel().apply(task, infer_bound(task.dag, inside), Random(0), OPTIONS)
    assert state is not None
    assert parallel_loops(state) == ["i@j@", "j"]
    assert not has_nested_parallel(state)


def test_parallel_loops_inside_parallel_loops_are_found() -> None:
    a = te.placeholder((4, 4), name="A")
    b = te.compute((4, 4), lambda i, j: a[i, j] * 2.0, name="B")
    c = te.compute((4, 4), lambda i, j: b[i, j] + 1.0, name="C")
    state = LoopState.initial(task_of((a, c)).dag).compute_at("B", "C", "i").parallel("C", "i")
    assert not has_nested_parallel(state)
    assert has_nested_parallel(state.parallel("B", "j"))
    assert has_nested_parallel(state.parallel("C", "j"))


@pytest.mark.parametrize("seed", range(4))
def test_each_reduction_gets_a_hint(seed: int) -> None:
    task = task_of(softmax_nm())
    state = Unroll().apply(
        task, LoopState.initial(task.dag), Random(seed), SpaceOptions(unroll_steps=(16, 64))
    )
    assert state is not None
    hints = {stage.op.name: stage.auto_unroll_max_step for stage in state.stages}
    assert {name for name, hint in hints.items() if hint} == {"maxelem", "expsum"}
    assert set(hints.values()) <= {0, 16, 64}


def test_listed_loops_are_unrolled_in_the_innermost_tile() -> None:
    a = te.placeholder((8, 8), name="A")
    attrs = {"auto_scheduler_always_unroll_inner": ("i",)}
    b = te.compute((8, 8), lambda i, j: a[j, i] * 2.0, name="B", attrs=attrs)
    task = task_of((a, b))
    tiled = LoopState.initial(task.dag).split("B", "i", [2]).split("B", "j", [4])
    tiled = tiled.reorder("B", ["i.0", "j.0", "i.1", "j.1"])
    state = Unroll().apply(task, tiled, Random(0), OPTIONS)
    assert state is not None
    unrolled = [loop.name for loop in state["B"].iters if loop.annotation is IteratorAnnotation.UNROLL]
    assert unrolled == ["i.1"]


def test_one_two_or_all_loops_that_fit_become_a_vector() -> None:
    """The field never takes all of several."""
    a = te.placeholder((2, 2, 4), name="A")
    b = te.compute((2, 2, 4), lambda i, j, k: a[i, j, k] * 2.0, name="B")
    task = task_of((a, b))
    state = LoopState.initial(task.dag)
    assert vector_loops(task, state) == {"k", "j@k@", "i@j@k@"}
    assert vector_loops(task, state, SpaceOptions(max_vectorize_size=8)) == {"k", "j@k@"}
    assert vector_loops(task, state, SpaceOptions(max_vectorize_size=2)) == set()


def test_of_a_tile_only_the_innermost_loop_is_a_vector() -> None:
    a = te.placeholder((4, 4), name="A")
    b = te.compute((4, 4), lambda i, j: a[i, j] * 2.0, name="B")
    task = task_of((a, b))
    tiled = LoopState.initial(task.dag).split("B", "i", [2]).split("B", "j", [2])
    assert vector_loops(task, tiled) == {"j.1"}
