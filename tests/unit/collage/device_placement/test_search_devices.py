"""The search of placements on devices against brute force, and on large programs."""

from __future__ import annotations

import random
from itertools import product
from math import inf

import pytest

from intarsia.collage.device_placement.device_problem import DeviceProblem, DeviceTask, Link
from intarsia.collage.device_placement.search_devices import improved, search_devices, seeds


def _random_problem(seed: int, tasks: int, devices: int) -> DeviceProblem:
    rng = random.Random(seed)
    found = []
    for number in range(tasks):
        seconds = [rng.choice([1.0, 2.0, 3.5, inf]) for _ in range(devices)]
        seconds[rng.randrange(devices)] = rng.choice([1.0, 2.0])
        needs = tuple(need for need in range(number) if rng.random() < 0.4)
        found.append(DeviceTask(tuple(seconds), needs, rng.randrange(4)))
    links = tuple(
        tuple(
            Link() if a == b else Link(rng.choice([0.0, 0.2]), rng.choice([0.1, 0.6])) for b in range(devices)
        )
        for a in range(devices)
    )
    return DeviceProblem(tuple(found), links)


@pytest.mark.quick_cases(20)
@pytest.mark.parametrize("seed", range(60))
def test_it_is_the_best_of_all_placements(seed: int) -> None:
    problem = _random_problem(seed, tasks=3 + seed % 5, devices=2 + seed % 2)
    everything = product(range(problem.devices), repeat=len(problem.tasks))
    best = min(map(problem.makespan, everything))
    found = search_devices(problem)
    assert found.is_exact
    assert found.seconds == pytest.approx(best, abs=1e-12)
    assert problem.makespan(found.assignment) == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_a_proof_that_is_given_up_leaves_a_bound(seed: int) -> None:
    problem = _random_problem(seed, tasks=7, devices=2)
    best = min(map(problem.makespan, product(range(2), repeat=7)))
    found = search_devices(problem, nodes=3)
    assert found.bound <= best + 1e-12
    assert found.seconds >= best - 1e-12
    assert found.seconds <= min(map(problem.makespan, seeds(problem)))


def test_alike_devices_do_not_multiply_the_work() -> None:
    tasks = tuple(DeviceTask((1.0,) * 3) for _ in range(7))
    problem = DeviceProblem(tasks, ((Link(0.5),) * 3,) * 3)
    found = search_devices(problem, nodes=1_500)
    assert (found.seconds, found.is_exact) == (3.0, True)


def test_branches_of_a_large_program_are_divided() -> None:
    tasks = [DeviceTask((0.0, inf))]
    ends = []
    for _ in range(2):
        before = 0
        for _ in range(60):
            tasks.append(DeviceTask((1.0, 1.0), (before,), 8))
            before = len(tasks) - 1
        ends.append(before)
    tasks.append(DeviceTask((1.0, 1.0), tuple(ends)))
    problem = DeviceProblem(tuple(tasks), ((Link(), Link(0.25)), (Link(0.25), Link())))
    found = search_devices(problem, nodes=5_000)
    assert found.seconds == pytest.approx(61.5)
    assert problem.copies(found.assignment) == 2


def test_moves_only_make_faster() -> None:
    problem = _random_problem(5, tasks=30, devices=3)
    for seed in seeds(problem):
        assert problem.makespan(improved(problem, seed)) <= problem.makespan(seed)


def test_nothing_takes_no_time() -> None:
    assert search_devices(DeviceProblem((), ((Link(),),))).seconds == 0.0
