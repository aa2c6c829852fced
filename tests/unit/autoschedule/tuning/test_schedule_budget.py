"""The budget that the searches of all kernels share."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from intarsia.autoschedule.tuning.schedule_budget import ScheduleBudget


@dataclass
class Clock:
    now: float = 100.0

    def __call__(self) -> float:
        return self.now


def test_trials_are_granted_until_all_are_used() -> None:
    budget = ScheduleBudget(trials=10)
    assert budget.granted(8) == 8
    budget.used += 8
    assert budget.granted(8) == 2
    assert budget.fraction == pytest.approx(0.8)
    budget.used += 2
    assert (budget.granted(8), budget.fraction, budget.is_over) == (0, 1.0, False)


def test_nothing_is_granted_when_the_time_is_over() -> None:
    clock = Clock()
    budget = ScheduleBudget(seconds=4.0, clock=clock)
    clock.now += 3.0
    assert (budget.granted(5), budget.spent, budget.fraction) == (5, 3.0, 0.75)
    clock.now += 2.0
    assert (budget.granted(5), budget.is_over, budget.fraction) == (0, True, 1.0)


def test_nothing_is_granted_after_a_wish_to_stop() -> None:
    wishes = iter([False, True])
    budget = ScheduleBudget(should_stop=lambda: next(wishes))
    assert budget.granted(3) == 3
    assert budget.granted(3) == 0


def test_without_trials_all_is_used() -> None:
    assert ScheduleBudget(trials=0).fraction == 1.0
