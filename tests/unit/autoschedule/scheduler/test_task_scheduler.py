"""Dividing a budget among tasks, with tuners that measure nothing."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf

import pytest

from intarsia.autoschedule.scheduler import (
    ScheduledTask,
    SchedulerOptions,
    SchedulerTable,
    SchedulingStrategy,
    TaskScheduler,
)
from intarsia.support.errors import UsageError


@dataclass
class Tuner:
    """Gives the costs of a list, then the last of them for ever, or nothing any more."""

    costs: Sequence[float] = (1e-3,)
    ends: bool = False
    asked: list[int] = field(default_factory=list)
    given: int = 0

    def tune_round(self, n: int) -> list[float]:
        self.asked.append(n)
        places = range(self.given, self.given + n)
        self.given += n
        known = [self.costs[place] for place in places if place < len(self.costs)]
        return known if self.ends else known + [self.costs[-1]] * (n - len(known))


def _scheduler(tuners: Sequence[Tuner], options: SchedulerOptions, **given: object) -> TaskScheduler:
    tasks = [ScheduledTask(tuner, f"task {number}") for number, tuner in enumerate(tuners)]
    return TaskScheduler(tasks, options, **given)  # type: ignore[arg-type]  # the test's own keywords


def _trials(scheduler: TaskScheduler) -> list[int]:
    return [each.trials for each in scheduler.progress]


ONE = SchedulerOptions(trials_per_round=1)


@pytest.mark.parametrize("trials", [2, 5, 20])
def test_golden_gradient(trials: int) -> None:
    """Where only the first task counts, it gets all but the first round of the other (upstream's test)."""
    scheduler = _scheduler([Tuner(), Tuner()], ONE, objective=lambda costs: 1e5 * costs[0])
    scheduler.tune(trials)
    assert _trials(scheduler) == [trials - 1, 1]


def test_round_robin_takes_turns() -> None:
    options = SchedulerOptions(SchedulingStrategy.ROUND_ROBIN, trials_per_round=4)
    order: list[int] = []
    scheduler = _scheduler(
        [Tuner(), Tuner(), Tuner()], options, on_round=[lambda table: order.append(table.tuned)]
    )
    scheduler.tune(29)
    assert order == [0, 1, 2, 0, 1, 2, 0, 1]
    assert _trials(scheduler) == [12, 9, 8]


def test_the_slow_task_gets_more() -> None:
    scheduler = _scheduler([Tuner([1e-2]), Tuner([1e-4])], ONE)
    scheduler.tune(30)
    assert _trials(scheduler)[0] > 20


def test_weights_count() -> None:
    tasks = [ScheduledTask(Tuner([1e-3]), weight=weight) for weight in (1.0, 50.0)]
    scheduler = TaskScheduler(tasks, ONE)
    scheduler.tune(20)
    assert _trials(scheduler)[1] > _trials(scheduler)[0]
    assert scheduler.objective == pytest.approx(51e-3)


def test_a_task_that_still_gains_gets_the_next_round() -> None:
    falling = [1e-3 * 0.5**number for number in range(40)]
    options = SchedulerOptions(trials_per_round=1, alpha=1.0, min_trials=4)
    scheduler = _scheduler([Tuner([1e-3]), Tuner(falling)], options)
    scheduler.tune(16)
    assert _trials(scheduler) == [4, 12]


def test_costs_of_microseconds_have_gradients() -> None:
    """Upstream's step of 1e-4 seconds would make these costs negative."""

    def root(costs: Sequence[float]) -> float:
        assert min(costs) >= 0
        return float(sum(cost**0.5 for cost in costs))

    scheduler = _scheduler([Tuner([1e-6]), Tuner([4e-6])], ONE, objective=root)
    scheduler.tune(12)
    assert sum(_trials(scheduler)) == 12
    assert _trials(scheduler)[1] > _trials(scheduler)[0]


def test_a_task_without_anything_left_is_dead() -> None:
    first = Tuner([1e-2, 1e-2, 1e-2], ends=True)
    scheduler = _scheduler([first, Tuner([1e-6])], SchedulerOptions(trials_per_round=2))
    scheduler.tune(20)
    assert _trials(scheduler) == [3, 17]
    assert [each.is_dead for each in scheduler.progress] == [True, False]
    assert len(first.asked) == 3


def test_a_task_that_never_works_is_dead() -> None:
    scheduler = _scheduler([Tuner([inf]), Tuner([1e-3])], SchedulerOptions(trials_per_round=4))
    scheduler.tune(40)
    assert _trials(scheduler) == [4, 36]
    assert scheduler.objective is None


def test_a_task_may_fail_as_long_as_it_has_its_minimum() -> None:
    late = Tuner([*[inf] * 10, 1e-3])
    scheduler = _scheduler([late, Tuner([1e-3])], SchedulerOptions(trials_per_round=4, min_trials=12))
    scheduler.tune(40)
    assert not scheduler.progress[0].is_dead
    assert scheduler.progress[0].best == 1e-3


def test_the_dead_are_not_chosen_where_no_live_one_promises_anything() -> None:
    dead = Tuner([1e-3], ends=True)
    options = SchedulerOptions(trials_per_round=1)
    scheduler = _scheduler([dead, Tuner(), Tuner()], options, objective=lambda _: 0.0)
    scheduler.tune(50)
    assert _trials(scheduler)[0] == 1
    assert len(dead.asked) <= 2
    assert sum(_trials(scheduler)) == 50


def test_all_dead_ends_the_run() -> None:
    scheduler = _scheduler([Tuner([1e-3], ends=True), Tuner([inf])], ONE)
    scheduler.tune(100)
    assert _trials(scheduler) == [1, 1]


def test_a_task_that_stalls_is_dead() -> None:
    options = SchedulerOptions(trials_per_round=2, per_task_early_stopping=5)
    scheduler = _scheduler([Tuner([1e-3]), Tuner([1e-3 * 0.9**n for n in range(99)])], options)
    scheduler.tune(60)
    assert scheduler.progress[0].is_dead
    assert _trials(scheduler) == [8, 52]


def test_nothing_improves_any_more() -> None:
    options = SchedulerOptions(trials_per_round=2, early_stopping=6)
    scheduler = _scheduler([Tuner(), Tuner()], options)
    scheduler.tune(1000)
    assert sum(_trials(scheduler)) == 10


def test_no_early_end_while_a_live_task_has_nothing() -> None:
    options = SchedulerOptions(trials_per_round=1, early_stopping=3, min_trials=20)
    scheduler = _scheduler([Tuner([*[inf] * 18, 1e-3]), Tuner()], options)
    scheduler.tune(100)
    assert scheduler.progress[0].best == 1e-3


def test_a_round_has_at_most_its_share_of_the_budget() -> None:
    first, second = Tuner(), Tuner()
    scheduler = _scheduler([first, second], SchedulerOptions())
    scheduler.tune(20)
    assert first.asked[0] == second.asked[0] == 10


def test_too_small_a_budget() -> None:
    scheduler = _scheduler([Tuner(), Tuner()], ONE)
    with pytest.raises(UsageError, match="1 trials for 2 tasks"):
        scheduler.tune(1)


def test_a_tuner_that_measures_too_much() -> None:
    class Eager:
        def tune_round(self, n: int) -> list[float]:
            return [1e-3] * (n + 1)

    with pytest.raises(UsageError, match="round of 1 trials measured 2"):
        TaskScheduler([ScheduledTask(Eager())], ONE).tune(5)


def test_restored_tasks_go_on() -> None:
    scheduler = _scheduler([Tuner([1e-3]), Tuner([1e-3])], SchedulerOptions(trials_per_round=2))
    scheduler.restore(0, [inf, 5e-4, 2e-3, 6e-4])
    assert scheduler.progress[0].rounds == 2
    assert scheduler.progress[0].best == 5e-4
    assert scheduler.progress[0].history == [5e-4]
    scheduler.tune(2)
    assert _trials(scheduler) == [4, 2]
    assert scheduler.trials == 6


def test_a_restored_task_may_be_dead_already() -> None:
    options = SchedulerOptions(trials_per_round=2, per_task_early_stopping=3)
    scheduler = _scheduler([Tuner(), Tuner()], options)
    scheduler.restore(0, [1e-3, *[2e-3] * 4])
    scheduler.restore(1, [inf])
    assert [each.is_dead for each in scheduler.progress] == [True, False]


def test_alike_tasks_hope_for_the_speed_of_the_best() -> None:
    """Both cost the same and do as much; the second is alike a third that is ten times as fast."""
    costs = (1e-2, 1e-2, 1e-3)
    tags = ("", "conv", "conv")
    tasks = [
        ScheduledTask(Tuner([cost]), flop_count=10**6, similarity_tag=tag)
        for cost, tag in zip(costs, tags, strict=True)
    ]
    scheduler = TaskScheduler(tasks, SchedulerOptions(trials_per_round=1, min_trials=4))
    scheduler.tune(16)
    trials = _trials(scheduler)
    assert trials[1] > trials[0]


def test_a_task_leaves_those_that_are_alike() -> None:
    tasks = [ScheduledTask(Tuner([cost]), flop_count=10**6, similarity_tag="conv") for cost in (1e-2, 1e-3)]
    scheduler = TaskScheduler(tasks, ONE)
    scheduler.tune(30)
    assert scheduler._groups.group(0) == frozenset()
    assert _trials(scheduler)[1] > 1


def test_the_table_tells_every_round() -> None:
    tables: list[SchedulerTable] = []
    tasks = [ScheduledTask(Tuner([2e-3]), "a", 3.0, 4000), ScheduledTask(Tuner([1e-3]), "b")]
    TaskScheduler(tasks, ONE, on_round=[tables.append]).tune(3)
    assert [table.trials for table in tables] == [1, 2, 3]
    assert [table.objective is None for table in tables] == [True, False, False]
    first, second = tables[-1].rows
    assert (first.name, first.cost) == ("a", 2e-3)
    assert first.flop_per_second == pytest.approx(2e6)
    assert (second.cost, second.flop_per_second) == (1e-3, None)
    assert tables[-1].objective == pytest.approx(7e-3)


def test_the_seed_decides_among_equals() -> None:
    def order(seed: int) -> list[int]:
        found: list[int] = []
        scheduler = _scheduler(
            [Tuner(), Tuner(), Tuner()],
            ONE,
            objective=lambda _: 0.0,
            rng=random.Random(seed),
            on_round=[lambda table: found.append(table.tuned)],
        )
        scheduler.tune(20)
        return found

    assert order(1) == order(1)
    assert order(1) != order(2)


def test_no_task_and_bad_options() -> None:
    with pytest.raises(UsageError, match="no task to tune"):
        TaskScheduler([])
    with pytest.raises(UsageError, match="expected alpha"):
        SchedulerOptions(alpha=2.0)
    with pytest.raises(UsageError, match="expected none below 0"):
        ScheduledTask(Tuner(), weight=-1.0)
