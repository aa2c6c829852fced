"""The search policy of Ansor."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from random import Random
from typing import Final

from intarsia.autoschedule.cost_model import CostModel
from intarsia.autoschedule.measuring.callbacks import OnMeasured
from intarsia.autoschedule.measuring.schedule_measurer import ScheduleMeasurer
from intarsia.autoschedule.policy.coordinate_descent import CoordinateDescent
from intarsia.autoschedule.policy.known_records import known_records
from intarsia.autoschedule.policy.measured_states import MeasuredStates
from intarsia.autoschedule.policy.policy_options import PolicyOptions
from intarsia.autoschedule.policy.program_search import ProgramSearch
from intarsia.autoschedule.policy.tuning_options import TuningOptions
from intarsia.autoschedule.population import with_bounds
from intarsia.autoschedule.task import SearchTask, SpaceOptions
from intarsia.measure.measure_result import MeasureResult
from intarsia.native.loop_state import LoopState
from intarsia.native.loop_state.record import Record
from intarsia.support.garbage_collection import pause_garbage_collection
from intarsia.tune.run_control import WallMeter

CLOSE: Final = 1.25
"""Maximum ratio of a finalist's cost to the least one: single measurements are not that wrong."""


class SketchPolicy:
    """Samples programs of sketches, improves them by a cost model, measures the best (Ansor, section 5).

    Beyond Ansor's policy: seeds, such as the default schedule, are measured first, bred from, and win
    among equals, so that the result is never slower than they are; a draft model prunes what does not
    fit; the last trials are coordinate descent; the model is trained on failures too; programs are ranked by
    cost, because FLOP/s are 0 for many DAGs; the finalists are re-measured, interleaved.

    Attributes:
        task: Search task.
        search_seconds: Seconds spent on finding programs and on the model, without measuring.
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
        on_confirmed: Sequence[OnMeasured] = (),
        draft: CostModel | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create a policy without measurements.

        Args:
            task: Search task.
            model: Cost model that ranks programs and is updated with measurements; may be shared with other
                tasks.
            measurer: Measurer of schedules.
            options: Options of the policy.
            space: Limits of the space.
            rng: Source of all random decisions; None for one with seed 0.
            seeds: Programs that are measured first, the baseline before all others. A seed that cannot be
                lowered
                is dropped.
            sketches: Sketches that programs are drawn from; None for those of the task.
            on_measured: Callbacks that are called with each round's measurements, finalists included.
            on_confirmed: Callbacks that are called with the finalists' measurements, the winner's marked and
                last. Measurers report rounds themselves, but cannot know the winner.
            draft: Model that prunes new candidates before the cost model, if given; it is not updated.
            clock: Monotonic clock in seconds.
        """
        self.task = task
        self.search_seconds = 0.0
        self._model = model
        self._measurer = measurer
        self._options = options or PolicyOptions()
        self._on_measured = tuple(on_measured)
        self._on_confirmed = tuple(on_confirmed)
        self._clock = clock
        self._seeds = {state.text: state for state in map(with_bounds, seeds) if state is not None}
        self._measured = MeasuredStates(preferred=next(iter(self._seeds), None))
        limits = space or SpaceOptions()
        chance = rng or Random(0)  # noqa: S311 - a search, no secrets
        self._search = ProgramSearch(task, model, self._options, limits, chance, sketches, draft)
        self._descent = CoordinateDescent(task, model, limits)

    @property
    def best_state(self) -> LoopState | None:
        """Schedule with the least measured cost; None while none works."""
        return self._measured.best_state

    @property
    def best_cost(self) -> float:
        """Cost of the best schedule in seconds; inf while none works."""
        return self._measured.best_cost

    @property
    def trials(self) -> int:
        """Number of measured schedules, including preloaded ones."""
        return self._measured.trials

    @property
    def sketches(self) -> tuple[LoopState, ...]:
        """Sketches that programs are drawn from."""
        return self._search.sketches

    def preload(self, records: Iterable[Record], *, teach: bool = True) -> int:
        """Add the measurements of a log, to continue an earlier search.

        Programs of the log, including failures, are not measured again.

        Args:
            records: Records of the log; those of other tasks are skipped (`known_records`).
            teach: Whether to update the model with them; not needed after `update_from_records`.

        Returns:
            Number of programs that were not measured before.
        """
        before = self.trials
        recorded = list(known_records(self.task, records))
        for program in recorded:
            self._measured.add(program.state, program.cost)
            if program.is_confirmed:
                self._measured.select_confirmed(program.state)
        if teach and recorded:
            states, costs = [program.state for program in recorded], [program.cost for program in recorded]
            self._model.update(self.task, states, costs)
        return self.trials - before

    def search(self, options: TuningOptions) -> LoopState | None:
        """Search and measure until the options end it, or no new program is found.

        Returns:
            The best schedule; None if none works. With 0 or 1 trials nothing is measured, and the result is
            the best
            by preloaded measurements, or else by the model.
        """
        if options.num_measure_trials <= 1:
            return self.best_state or self._search.find_most_promising(self._parents, self._measured)
        meter = WallMeter(self._clock)
        control = options.control(meter)
        begin = options.num_measure_trials - int(self._options.descent_share * options.num_measure_trials)
        while size := control.granted(options.num_measures_per_round):
            is_last_part = meter.trials >= begin
            states = self._descend(size) if is_last_part else ()
            states = states or self._find_candidates(
                size if is_last_part else min(size, begin - meter.trials)
            )
            costs = self._measure(states or self._descend(size))
            meter.trials += len(costs)
            if not costs or self._measured.has_stalled(options.early_stopping):
                break
        return self.confirm_best()

    def tune_round(self, n: int) -> list[float]:
        """Search one round, measure, and update the model (Ansor's ContinueSearchOneRound).

        The number of rounds is unknown here, so each but the first has its share of descent steps.

        Returns:
            Seconds of each measured program, inf for a failure; empty when no new program is found.
        """
        steps = self._descend(int(self._options.descent_share * n))
        return self._measure((*self._find_candidates(n - len(steps), steps), *steps))

    def confirm_best(self) -> LoopState | None:
        """Re-measure the finalists, interleaved with the first seed; return the best of them."""
        finalists = list(self._measured.best(self._options.finalists, CLOSE))
        seed = next(iter(self._seeds.values()), None)
        if seed is not None and self._measured.works(seed.text) and seed not in finalists:
            finalists.append(seed)
        if self._options.finalists and len(finalists) > 1:
            measurements = self._measurer.remeasure(self.task, finalists)
            self._measured.confirm(finalists, [measurement.cost for measurement in measurements])
            confirmed = self._mark_winner(finalists, measurements)
            for callback in (*self._on_measured, *self._on_confirmed):
                callback(self.task, *confirmed)
        return self.best_state

    def _mark_winner(
        self, finalists: Sequence[LoopState], measurements: Sequence[MeasureResult]
    ) -> tuple[list[LoopState], list[MeasureResult]]:
        """Return the finalists with their measurements, the winner marked and last."""
        # Logs are read in order: a finalist after the winner would count as a newer, faster program.
        best = self.best_state
        pairs = list(zip(finalists, measurements, strict=True))
        won = [(state, measured) for state, measured in pairs if state == best and measured.is_ok]
        others = [pair for pair in pairs if pair not in won]
        marked = [*others, *((state, replace(measured, is_confirmed=True)) for state, measured in won)]
        return [state for state, _ in marked], [measured for _, measured in marked]

    def _measure(self, states: Sequence[LoopState]) -> list[float]:
        if not states:
            return []
        measurements = self._measurer.measure(self.task, states)
        for on_measured in self._on_measured:
            on_measured(self.task, states, measurements)
        costs = [measurement.cost for measurement in measurements]
        for state, cost in zip(states, costs, strict=True):
            self._measured.add(state, cost)
        with self._searching():
            self._model.update(self.task, states, costs)
        return costs

    def _descend(self, count: int) -> tuple[LoopState, ...]:
        """Return unmeasured neighbours of the best program."""
        best, most = self.best_state, min(count, self._options.descent_batch)
        if best is None or most < 1 or not self._options.descent_share:
            return ()
        with self._searching():
            return self._descent.candidates(best, most, self._measured)

    def _find_candidates(self, count: int, taken: Sequence[LoopState] = ()) -> tuple[LoopState, ...]:
        """Return unmeasured seeds, then searched programs; an empty search is retried."""
        excluded = self._measured.texts | {state.text for state in taken}
        seeds = tuple(seed for seed in self._seeds.values() if seed.text not in excluded)[:count]
        searched: tuple[LoopState, ...] = ()
        with self._searching():
            for _ in range(1 + self._options.retry_search_one_round_on_empty):
                if not searched and len(seeds) < count:
                    left = count - len(seeds)
                    searched = self._search.find(left, self._parents, self._measured, (*taken, *seeds))
        return (*seeds, *searched)

    @contextmanager
    def _searching(self) -> Iterator[None]:
        start = self._clock()
        with pause_garbage_collection():
            yield
        self.search_seconds += self._clock() - start

    @property
    def _parents(self) -> tuple[LoopState, ...]:
        """Seeds that did not fail."""
        measured = self._measured
        return tuple(
            seed for seed in self._seeds.values() if seed.text not in measured or measured.works(seed.text)
        )
