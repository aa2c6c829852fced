"""The search of Ansor."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from random import Random

from intarsia.autoschedule.cost_model import CostModel
from intarsia.autoschedule.measuring.callbacks import OnMeasured
from intarsia.autoschedule.measuring.schedule_measurer import ScheduleMeasurer
from intarsia.autoschedule.policy.coordinate_descent import CoordinateDescent
from intarsia.autoschedule.policy.known_records import known_records
from intarsia.autoschedule.policy.measured_states import MeasuredStates
from intarsia.autoschedule.policy.policy_options import PolicyOptions
from intarsia.autoschedule.policy.program_search import ProgramSearch
from intarsia.autoschedule.policy.trial_budget import TrialBudget
from intarsia.autoschedule.policy.tuning_options import TuningOptions
from intarsia.autoschedule.population import with_bounds
from intarsia.autoschedule.task import SearchTask, SpaceOptions
from intarsia.native.loop_state import LoopState
from intarsia.native.loop_state.record import Record
from intarsia.support.garbage_collection import pause_garbage_collection


class SketchPolicy:
    """Samples programs of sketches, improves them by a cost model, measures the best (Ansor, section 5).

    Beyond the field's policy: seeds, such as the default schedule, are measured first, bred from, and win
    among equals, so that the result is never slower than they are; a draft model leaves out what does not
    fit; the last trials walk to the best neighbour; failures are taught as failures; programs are ranked by
    cost, as operations a second are 0 for many DAGs; the best few are measured again against one another.

    Attributes:
        task: What is searched.
        search_seconds: Time spent on finding programs and on the model, not on measuring.
    """

    def __init__(
        self,
        task: SearchTask,
        model: CostModel,
        measurer: ScheduleMeasurer,
        options: PolicyOptions | None = None,
        space: SpaceOptions | None = None,
        rng: Random | None = None,
        seeds: Sequence[LoopState] = (),
        sketches: Sequence[LoopState] | None = None,
        on_measured: Sequence[OnMeasured] = (),
        draft: CostModel | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """A policy that has measured nothing.

        Args:
            task: What is searched.
            model: Ranks programs, and learns from measurements; may be shared with other tasks.
            measurer: Measures programs.
            options: How it searches.
            space: What is searched.
            rng: Decides everything; else one with seed 0.
            seeds: Programs that are measured first, the one to beat first of all. One that cannot be lowered
                is left out.
            sketches: Structures that programs are drawn from; else those of the task.
            on_measured: Told of each round's measurements.
            draft: Ranks new candidates before the model does, if given; it is taught nothing.
            clock: Seconds from any time on.
        """
        self.task = task
        self.search_seconds = 0.0
        self._model = model
        self._measurer = measurer
        self._options = options or PolicyOptions()
        self._on_measured = tuple(on_measured)
        self._clock = clock
        self._seeds = {each.text: each for each in map(with_bounds, seeds) if each is not None}
        self._measured = MeasuredStates(preferred=next(iter(self._seeds), None))
        limits = space or SpaceOptions()
        chance = rng or Random(0)  # noqa: S311 - a search, no secrets
        self._search = ProgramSearch(task, model, self._options, limits, chance, sketches, draft)
        self._descent = CoordinateDescent(task, model, limits)

    @property
    def best_state(self) -> LoopState | None:
        """The schedule with the least measured cost; None while none works."""
        return self._measured.best_state

    @property
    def best_cost(self) -> float:
        """Its cost in seconds; inf while none works."""
        return self._measured.best_cost

    @property
    def trials(self) -> int:
        """How many schedules were measured, those that were preloaded included."""
        return self._measured.trials

    @property
    def sketches(self) -> tuple[LoopState, ...]:
        """The structures that programs are drawn from."""
        return self._search.sketches

    def preload(self, records: Iterable[Record], *, teach: bool = True) -> int:
        """Count what a log says was measured, so that a search goes on where it ended.

        Programs of the log are not measured again, failures neither.

        Args:
            records: Of the log; those of other tasks are passed over (`known_records`).
            teach: Whether the model learns from them; not if it did already (`update_from_records`).

        Returns:
            How many programs were not known before.
        """
        before = self.trials
        found = list(known_records(self.task, records))
        for state, cost in found:
            self._measured.add(state, cost)
        if teach and found:
            self._model.update(self.task, [state for state, _ in found], [cost for _, cost in found])
        return self.trials - before

    def search(self, options: TuningOptions) -> LoopState | None:
        """Search and measure until the options end it, or nothing new is found.

        Returns:
            The best schedule; None if none works. With 0 or 1 trials nothing is measured, and it is the best
            by measurements that were preloaded, or else by the model.
        """
        if options.num_measure_trials <= 1:
            return self.best_state or self._search.most_promising(self._parents, self._measured)
        budget = TrialBudget(options, self._clock)
        begin = options.num_measure_trials - int(self._options.descent_share * options.num_measure_trials)
        while size := budget.next_round():
            is_last_part = budget.spent >= begin
            states = self._steps(size) if is_last_part else ()
            states = states or self._candidates(size if is_last_part else min(size, begin - budget.spent))
            costs = self._measure(states or self._steps(size))
            budget.spent += len(costs)
            if not costs or self._measured.has_stalled(options.early_stopping):
                break
        return self.settle()

    def tune_round(self, n: int) -> list[float]:
        """Search one round, measure, and teach the model (the field's ContinueSearchOneRound).

        As nobody knows how many rounds follow, each but the first has its share of steps to neighbours.

        Returns:
            Seconds of each program that was measured, inf for a failure; none when nothing new is found.
        """
        steps = self._steps(int(self._options.descent_share * n))
        return self._measure((*self._candidates(n - len(steps), steps), *steps))

    def settle(self) -> LoopState | None:
        """Measure the best few again, in turns and with the first seed; the best of these is the best."""
        finalists = list(self._measured.best(self._options.finalists))
        seed = next(iter(self._seeds.values()), None)
        if seed is not None and self._measured.works(seed.text) and seed not in finalists:
            finalists.append(seed)
        if self._options.finalists and len(finalists) > 1:
            measurements = self._measurer.remeasure(self.task, finalists)
            for tell in self._on_measured:
                tell(self.task, finalists, measurements)
            self._measured.settle(finalists, [each.cost for each in measurements])
        return self.best_state

    def _measure(self, states: Sequence[LoopState]) -> list[float]:
        if not states:
            return []
        measurements = self._measurer.measure(self.task, states)
        for tell in self._on_measured:
            tell(self.task, states, measurements)
        costs = [each.cost for each in measurements]
        for state, cost in zip(states, costs, strict=True):
            self._measured.add(state, cost)
        with self._searching():
            self._model.update(self.task, states, costs)
        return costs

    def _steps(self, count: int) -> tuple[LoopState, ...]:
        """Neighbours of the best that are not known."""
        best, most = self.best_state, min(count, self._options.descent_batch)
        if best is None or most < 1 or not self._options.descent_share:
            return ()
        with self._searching():
            return self._descent.candidates(best, most, self._measured)

    def _candidates(self, count: int, taken: Sequence[LoopState] = ()) -> tuple[LoopState, ...]:
        """Seeds that were not measured, then what the search finds; one that finds nothing is repeated."""
        known = self._measured.texts | {state.text for state in taken}
        seeds = tuple(each for each in self._seeds.values() if each.text not in known)[:count]
        found: tuple[LoopState, ...] = ()
        with self._searching():
            for _ in range(1 + self._options.retry_search_one_round_on_empty):
                if not found and len(seeds) < count:
                    left = count - len(seeds)
                    found = self._search.find(left, self._parents, self._measured, (*taken, *seeds))
        return (*seeds, *found)

    @contextmanager
    def _searching(self) -> Iterator[None]:
        start = self._clock()
        with pause_garbage_collection():
            yield
        self.search_seconds += self._clock() - start

    @property
    def _parents(self) -> tuple[LoopState, ...]:
        """Seeds that did not fail."""
        known = self._measured
        return tuple(
            each for each in self._seeds.values() if each.text not in known or known.works(each.text)
        )
