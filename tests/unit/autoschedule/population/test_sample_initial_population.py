from random import Random

import pytest
from tests.native_workloads import matmul
from tests.schedule_families import SMALL, program_task
from tests.searched_programs import small_sketches, small_task, task_of

from intarsia.autoschedule.population import sample_initial_population
from intarsia.autoschedule.sketch import MicroKernelSketch, generate_sketches
from intarsia.autoschedule.task import SpaceOptions


def test_samples_are_different_programs_of_all_sketches() -> None:
    task = task_of(matmul(512, 512, 512))
    states = sample_initial_population(task, generate_sketches(task), 60, Random(0))
    assert len({str(state) for state in states}) == len(states) == 60
    kinds = {tuple(step.code for step in state.transform_steps if step.code in "CA CHW") for state in states}
    assert kinds == {(), ("CHW", "CA")}
    assert any("vectorize" in str(state) for state in states)
    assert all("parallel" in str(state) for state in states)


def test_a_seed_decides_everything() -> None:
    def texts(seed: int) -> list[str]:
        task, sketches = small_task("softmax_nm"), small_sketches("softmax_nm")
        return [str(state) for state in sample_initial_population(task, sketches, 8, Random(seed))]

    assert texts(1) == texts(1)
    assert texts(1) != texts(2)


def test_a_space_that_is_used_up_ends_the_sampling() -> None:
    task, sketches = small_task("running_sum"), small_sketches("running_sum")
    states = sample_initial_population(task, sketches, 1000, Random(0), SpaceOptions(most_failures=50))
    assert 1 <= len(states) < 20
    assert sample_initial_population(task, (), 10, Random(0)) == ()


@pytest.mark.parametrize(("share", "expected"), [(0.0, {False}), (0.5, {False, True}), (1.0, {True})])
def test_a_share_are_schedules_of_the_rule(share: float, expected: set[bool]) -> None:
    task = program_task("packed_product")
    sketch = MicroKernelSketch.of_task(task, SMALL)
    assert sketch is not None
    options = SpaceOptions(micro_kernels=SMALL, micro_kernel_share=share)
    states = sample_initial_population(task, generate_sketches(task), 20, Random(0), options)
    assert len(states) == 20
    assert {sketch.family.choice_of(state) is not None for state in states} == expected


def test_without_sketches_all_are_schedules_of_the_rule() -> None:
    task = program_task("packed_product")
    options = SpaceOptions(micro_kernels=SMALL, micro_kernel_share=0.0)
    assert len(sample_initial_population(task, (), 5, Random(0), options)) == 5


def test_a_rule_that_leaves_nothing_open_adds_nothing() -> None:
    task, sketches = small_task("running_sum"), small_sketches("running_sum")
    options = SpaceOptions(most_failures=50)
    with_rule = SpaceOptions(most_failures=50, micro_kernels=SMALL)
    plain, both = (
        sample_initial_population(task, sketches, 5, Random(0), each) for each in (options, with_rule)
    )
    assert plain == both
