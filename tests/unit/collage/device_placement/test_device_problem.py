"""What a placement on devices takes, by the model."""

from __future__ import annotations

from math import inf

import pytest

from intarsia.collage.device_placement.device_problem import DeviceProblem, DeviceTask, Link, Schedule
from intarsia.support.errors import UsageError

_LINKS = ((Link(), Link(1.0, 0.5)), (Link(2.0), Link()))


def _problem(*tasks: DeviceTask) -> DeviceProblem:
    return DeviceProblem(tasks, _LINKS)


def test_tasks_of_one_device_run_one_after_the_other() -> None:
    problem = _problem(DeviceTask((3.0, 1.0)), DeviceTask((4.0, 1.0)))
    assert problem.makespan((0, 0)) == 7.0
    assert problem.makespan((0, 1)) == 4.0 - 1.0
    assert problem.makespan((1, 0)) == 4.0


def test_a_copy_is_made_once_by_the_device_that_needs_it() -> None:
    source = DeviceTask((1.0, inf), nbytes=4)
    user = DeviceTask((9.0, 1.0), (0,))
    problem = _problem(source, user, user)
    assert problem.makespan((0, 1, 1)) == 1.0 + (1.0 + 4 * 0.5) + 1.0 + 1.0
    assert problem.copies((0, 1, 1)) == 1


def test_a_device_waits_for_what_it_needs() -> None:
    problem = _problem(DeviceTask((5.0, 5.0)), DeviceTask((1.0, 1.0)), DeviceTask((1.0, 1.0), (0, 1)))
    assert problem.makespan((0, 1, 0)) == 5.0 + 2.0 + 1.0
    assert problem.makespan((0, 1, 1)) == 5.0 + 1.0 + 1.0


def test_where_a_task_cannot_run_nothing_ends() -> None:
    assert _problem(DeviceTask((inf, 1.0))).makespan((0,)) == inf


def test_the_last_task_can_be_taken_back() -> None:
    problem = _problem(DeviceTask((1.0, inf), nbytes=4), DeviceTask((9.0, 1.0), (0,)))
    schedule = Schedule(problem)
    schedule.run(0, 0)
    first = schedule.run(1, 1)
    schedule.take_back()
    assert schedule.clocks == [1.0, 0.0]
    assert schedule.run(1, 1) == first


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        pytest.param((DeviceTask((1.0,)),), "costs for 1 devices, expected 2", id="devices"),
        pytest.param((DeviceTask((1.0, 1.0), (0,)),), "not before it", id="order"),
        pytest.param((DeviceTask((inf, inf)),), "none of the 2 devices", id="nowhere"),
    ],
)
def test_a_malformed_problem_is_refused(tasks: tuple[DeviceTask, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        _problem(*tasks)
