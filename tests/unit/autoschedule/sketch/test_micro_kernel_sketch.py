"""The schedules of native's rules as a sketch: all of them right, the default among them."""

from __future__ import annotations

from random import Random

import pytest
from tests.native_workloads import matmul
from tests.schedule_families import PROGRAMS, SMALL, check_runs_right, program_task
from tests.searched_programs import task_of

from intarsia.autoschedule.population import replay_program
from intarsia.autoschedule.sketch import MicroKernelSketch, generate_sketches
from intarsia.native import te
from intarsia.native.loop_state import LoopState
from intarsia.native.schedule import default_state

pytestmark = pytest.mark.quick_tests(11)

NAMES = [
    pytest.param(name, marks=[pytest.mark.slow] if name in {"attention", "winograd", "two_products"} else [])
    for name in PROGRAMS
]


def sketch_of(name: str) -> MicroKernelSketch:
    found = MicroKernelSketch.of_task(program_task(name), SMALL)
    assert found is not None
    return found


def draws(name: str, count: int, seed: int = 0) -> list[LoopState]:
    rng, sketch = Random(seed), sketch_of(name)
    return [state for _ in range(count) if (state := sketch.draw(rng)) is not None]


@pytest.mark.quick_cases(4)
@pytest.mark.parametrize("name", NAMES)
def test_every_drawn_schedule_is_a_program_of_its_own_steps(name: str) -> None:
    found = draws(name, 40)
    assert len(found) == 40
    dag = program_task(name).dag
    assert all(replay_program(dag, state.transform_steps) == state for state in found)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_what_is_drawn_and_moved_computes_the_right_result(name: str) -> None:
    rng, sketch = Random(1), sketch_of(name)
    found = {state.text: state for state in draws(name, 6, seed=2)}
    for state in tuple(found.values()):
        moved = sketch.draw_neighbour(state, rng)
        assert moved is not None
        assert moved != state
        found[moved.text] = moved
    for state in found.values():
        check_runs_right(name, state)


@pytest.mark.parametrize("name", NAMES)
def test_the_default_schedule_is_one_of_them(name: str) -> None:
    task, sketch = program_task(name), sketch_of(name)
    default = replay_program(task.dag, default_state(task.dag, SMALL, 2).transform_steps)
    assert default is not None
    assert sketch.default == default
    assert sketch.family.choice_of(default) == sketch.family.default
    assert sketch.family.fits(sketch.family.default)


@pytest.mark.quick_cases(4)
@pytest.mark.parametrize("name", NAMES)
def test_a_state_tells_its_choice(name: str) -> None:
    sketch = sketch_of(name)
    for state in draws(name, 20):
        choice = sketch.family.choice_of(state)
        assert choice is not None
        assert sketch.family.state_of(choice) == state


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_moves_reach_other_choices_of_every_knob(name: str) -> None:
    sketch, rng = sketch_of(name), Random(0)
    state, seen = sketch.default, set[tuple[int, int]]()
    for _ in range(250):
        assert state is not None
        choice = sketch.family.choice_of(state)
        assert choice is not None
        seen |= set(enumerate(choice))
        state = sketch.draw_neighbour(state, rng) or sketch.default
    for place, knob in enumerate(sketch.family.knobs):
        reached = {value for at, value in seen if at == place}
        assert len(reached) >= min(2, len(knob.values)), knob


def test_neighbours_are_a_step_away() -> None:
    sketch = sketch_of("convolution")
    default = sketch.default
    assert default is not None
    found = [sketch.family.choice_of(state) for state in sketch.neighbours(default)]
    assert len(found) == len(set(found)) > 3
    assert all(each is not None and each != sketch.family.default for each in found)


def test_states_of_other_sketches_have_no_choice_and_are_not_moved() -> None:
    task = program_task("packed_product")
    sketch = sketch_of("packed_product")
    assert sketch.family.choice_of(LoopState.initial(task.dag)) is None
    assert sketch.draw_neighbour(LoopState.initial(task.dag), Random(0)) is None
    assert list(sketch.neighbours(LoopState.initial(task.dag))) == []


def test_tiles_stay_in_the_registers() -> None:
    sketch = sketch_of("convolution")
    names = [knob.name for knob in sketch.family.knobs]
    for state in draws("convolution", 60):
        values = dict(zip(names, sketch.family.choice_of(state) or (), strict=True))
        sums = values["rows"] * values["pixels"] * values["blocks"]
        assert sums + values["blocks"] <= SMALL.vector_registers


def test_a_rule_that_leaves_nothing_open_has_no_sketch() -> None:
    x = te.placeholder((8, 8), name="x")
    doubled = te.compute((8, 8), lambda i, j: x[i, j] * 2.0, name="y")
    assert MicroKernelSketch.of_task(task_of((x, doubled)), SMALL) is None


def test_sketches_of_the_field_are_as_many_as_before() -> None:
    assert len(generate_sketches(task_of(matmul(512, 512, 512)))) == 3
