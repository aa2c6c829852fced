"""What a search of all kernels may spend."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from intarsia.driver.schedule_allowance import ScheduleAllowance


@dataclass
class Clock:
    now: float = 100.0

    def __call__(self) -> float:
        return self.now


def test_trials_are_granted_until_all_are_used() -> None:
    allowance = ScheduleAllowance(trials=10)
    assert allowance.granted(8) == 8
    allowance.used += 8
    assert allowance.granted(8) == 2
    assert allowance.fraction == pytest.approx(0.8)
    allowance.used += 2
    assert (allowance.granted(8), allowance.fraction, allowance.is_over) == (0, 1.0, False)


def test_nothing_is_granted_when_the_time_is_over() -> None:
    clock = Clock()
    allowance = ScheduleAllowance(seconds=4.0, clock=clock)
    clock.now += 3.0
    assert (allowance.granted(5), allowance.spent, allowance.fraction) == (5, 3.0, 0.75)
    clock.now += 2.0
    assert (allowance.granted(5), allowance.is_over, allowance.fraction) == (0, True, 1.0)


def test_nothing_is_granted_after_a_wish_to_stop() -> None:
    wishes = iter([False, True])
    allowance = ScheduleAllowance(should_stop=lambda: next(wishes))
    assert allowance.granted(3) == 3
    assert allowance.granted(3) == 0


def test_without_trials_all_is_used() -> None:
    assert ScheduleAllowance(trials=0).fraction == 1.0
