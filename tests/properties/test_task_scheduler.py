"""Properties of the task scheduler on random tasks."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples

from intarsia.autoschedule.scheduler import ScheduledTask, SchedulerOptions, SchedulingStrategy, TaskScheduler


@dataclass
class _Tuner:
    costs: Sequence[float]
    given: int = 0

    def tune_round(self, n: int) -> list[float]:
        begin, self.given = self.given, self.given + n
        return list(self.costs[begin : begin + n])


_COSTS = st.one_of(st.floats(1e-7, 1e-1), st.just(inf))
_TASKS = st.lists(
    st.tuples(
        st.lists(_COSTS, max_size=40),
        st.floats(0, 10),
        st.integers(0, 10**9),
        st.sampled_from(["", "a", "b"]),
    ),
    min_size=1,
    max_size=5,
)
_OPTIONS = st.builds(
    SchedulerOptions,
    strategy=st.sampled_from(SchedulingStrategy),
    alpha=st.floats(0, 1),
    window=st.integers(1, 4),
    trials_per_round=st.integers(1, 6),
    min_trials=st.integers(0, 8),
    per_task_early_stopping=st.one_of(st.none(), st.integers(1, 10)),
)
_Tasks = list[tuple[list[float], float, int, str]]


def _tuned(given_tasks: _Tasks, options: SchedulerOptions, trials: int) -> tuple[TaskScheduler, list[int]]:
    order: list[int] = []
    tasks = [ScheduledTask(_Tuner(costs), "", weight, flop, tag) for costs, weight, flop, tag in given_tasks]
    scheduler = TaskScheduler(tasks, options, on_round=[lambda table: order.append(table.tuned)])
    scheduler.tune(trials)
    return scheduler, order


@settings(max_examples=examples(60), deadline=None)
@given(_TASKS, _OPTIONS, st.integers(0, 60))
def test_the_budget_is_used_exactly_and_nobody_starves(
    tasks: _Tasks, options: SchedulerOptions, more: int
) -> None:
    trials = len(tasks) + more
    scheduler, order = _tuned(tasks, options, trials)
    assert scheduler.trials <= trials
    is_all_dead = all(each.is_dead for each in scheduler.progress)
    assert is_all_dead or scheduler.trials == trials
    assert set(order) == set(range(len(tasks)))
    if trials >= len(tasks) * (options.min_trials + options.trials_per_round):
        assert all(each.is_dead or each.trials >= options.min_trials for each in scheduler.progress)


@settings(max_examples=examples(40), deadline=None)
@given(_TASKS, _OPTIONS, st.integers(0, 40))
def test_the_same_run_twice_is_the_same(tasks: _Tasks, options: SchedulerOptions, more: int) -> None:
    runs = [_tuned(tasks, options, len(tasks) + more) for _ in range(2)]
    assert runs[0][1] == runs[1][1]
    assert runs[0][0].progress == runs[1][0].progress


@settings(max_examples=examples(40), deadline=None)
@given(_TASKS, _OPTIONS, st.integers(0, 40))
def test_the_dead_get_no_round(tasks: _Tasks, options: SchedulerOptions, more: int) -> None:
    order: list[int] = []
    dead: list[set[int]] = []
    scheduler = TaskScheduler(
        [ScheduledTask(_Tuner(costs)) for costs, *_ in tasks],
        options,
        on_round=[
            lambda table: order.append(table.tuned),
            lambda table: dead.append({n for n, row in enumerate(table.rows) if row.is_dead}),
        ],
    )
    scheduler.tune(len(tasks) + more)
    assert all(number not in before for number, before in zip(order[1:], dead, strict=False))
