from itertools import pairwise

import pytest
from tests.native_workloads import matmul, softmax_nm
from tests.searched_programs import random_programs, small_task, task_of

from intarsia.autoschedule.policy import neighbours
from intarsia.autoschedule.population import replay_program, with_bounds
from intarsia.autoschedule.sketch.micro_kernel_sketch import MicroKernelSketch
from intarsia.autoschedule.task import SpaceOptions
from intarsia.native.loop_state import LoopState
from intarsia.native.loop_state.steps import SplitStep
from intarsia.native.machine.isa import Isa
from intarsia.native.schedule import default_state

TASK = task_of(matmul(12, 8, 8))


def bounded(state: LoopState) -> LoopState:
    found = with_bounds(state)
    assert found is not None
    return found


def lengths(states: tuple[LoopState, ...]) -> set[tuple[int | None, ...]]:
    return {step.lengths for state in states for step in state.transform_steps if isinstance(step, SplitStep)}


def test_a_prime_factor_moves_between_two_parts() -> None:
    """12 as 2 * 3 * 2."""
    state = bounded(LoopState.initial(TASK.dag).split("C", "i", [3, 2]))
    expected = {(6, 2), (3, 4), (1, 2), (1, 6), (3, 1), (6, 1)}
    assert lengths(neighbours(TASK, state)) == expected
    assert all((2 * 3 * 2) % (one * other) == 0 for one, other in expected)


def test_innermost_parts_stay_below_the_limit() -> None:
    state = bounded(LoopState.initial(TASK.dag).split("C", "i", [3, 2]))
    found = lengths(neighbours(TASK, state, SpaceOptions(max_innermost_split_factor=3)))
    assert found == {(6, 2), (1, 2), (3, 1), (6, 1)}


def test_a_split_with_a_rest_changes_by_one_as_well() -> None:
    """12 as 3 times 5, and a rest."""
    state = bounded(LoopState.initial(TASK.dag).split("C", "i", [5]))
    assert lengths(neighbours(TASK, state)) == {(10,), (1,), (4,), (6,)}


def test_splits_that_follow_change_too() -> None:
    state = LoopState.initial(TASK.dag).cache_write("C", "local").split("C.local", "i_c", [4, 3])
    place = len(state.transform_steps) - 1
    state = bounded(state.follow_split("C", "i", place, 1))
    found = {each.text for each in neighbours(TASK, state)}
    assert any("i.1 (0,6)" in text and "i_c.1 (0,2)" in text for text in found)


def test_hints_become_others() -> None:
    state = bounded(LoopState.initial(TASK.dag).pragma("C", 0, "auto_unroll_max_step$16"))
    found = {each.stages[2].auto_unroll_max_step for each in neighbours(TASK, state)}
    assert found == {0, 64, 512}


def test_a_parallel_loop_is_of_more_or_fewer_loops() -> None:
    start = LoopState.initial(TASK.dag).split("C", "i", [3]).reorder("C", ["i.0", "j", "i.1", "k"])
    state = bounded(start.fuse("C", [0, 1]).parallel("C", 0))
    space = SpaceOptions(unroll_steps=(0,))
    loops = {each.stages[2].iters[0].name for each in neighbours(TASK, state, space)}
    assert loops == {"i.0@", "i.0@j@", "i.0@j@i.1@"}


def test_loops_as_declared_have_none() -> None:
    task = task_of(softmax_nm(4, 4))
    assert neighbours(task, bounded(LoopState.initial(task.dag))) == ()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["matmul", "double_matmul", "conv2d_nchw_bn_relu", "odd_rows"])
def test_neighbours_are_other_programs_and_legal(name: str) -> None:
    for state in random_programs(name, 4, 0):
        found = neighbours(small_task(name), state)
        texts = [each.text for each in found]
        assert len({state.text, *texts}) == len(found) + 1
        for each in found:
            assert replay_program(small_task(name).dag, each.transform_steps) == each
            assert each.concrete


def test_neighbours_come_in_one_order() -> None:
    (state, *_) = random_programs("matmul", 2, 0)
    orders = [[each.text for each in neighbours(small_task("matmul"), state)] for _ in range(2)]
    assert orders[0]
    assert all(one == other for one, other in pairwise(orders))


def test_micro_kernels_differ_in_one_decision() -> None:
    isa = Isa.host()
    task = task_of(matmul(64, 64, 64), 1)
    state = bounded(default_state(task.dag, isa, 1))
    sketch = MicroKernelSketch.of_task(task, isa)
    assert sketch is not None
    expected = {each.text for each in sketch.neighbours(state)}
    without = {each.text for each in neighbours(task, state)}
    found = {each.text for each in neighbours(task, state, SpaceOptions(micro_kernels=isa))}
    assert expected - without
    assert found == expected | without
