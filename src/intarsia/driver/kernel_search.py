"""The search for a schedule of one kernel, as the scheduler of all kernels sees it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from random import Random

from intarsia.autoschedule.cost_model import CostModel
from intarsia.autoschedule.extraction import ExtractedTask
from intarsia.autoschedule.measuring.callbacks import OnMeasured
from intarsia.autoschedule.measuring.schedule_measurement import ScheduleMeasurement
from intarsia.autoschedule.measuring.schedule_measurer import ScheduleMeasurer
from intarsia.autoschedule.policy import PolicyOptions, SketchPolicy, known_records
from intarsia.autoschedule.population import with_bounds
from intarsia.autoschedule.task import SearchTask, SpaceOptions
from intarsia.driver.schedule_allowance import ScheduleAllowance
from intarsia.driver.schedule_history import KeptSchedule
from intarsia.driver.schedule_records import ScheduleRow
from intarsia.measure.measure_result import MeasureError
from intarsia.native.loop_state import LoopState
from intarsia.native.loop_state.record import Record
from intarsia.native.schedule.schedule_book import history_text
from intarsia.support.errors import ExecutionError


class KernelSearch:
    """A sketch policy that begins with the default schedule, within what the whole search may spend.

    Attributes:
        extracted: The kernel.
        policy: Searches.
        failed: Failures by kind.
        default_seconds: What the default schedule took last; inf while it was not measured.
    """

    def __init__(
        self,
        extracted: ExtractedTask,
        model: CostModel,
        draft: CostModel,
        measurer: ScheduleMeasurer,
        allowance: ScheduleAllowance,
        seed: int,
        options: PolicyOptions | None = None,
        on_measured: Sequence[OnMeasured] = (),
        hints: Sequence[LoopState] = (),
    ) -> None:
        """A search that has measured nothing.

        Args:
            extracted: The kernel.
            model: Shared by all kernels.
            draft: Ranks candidates before the model does.
            measurer: Measures schedules.
            allowance: Shared by all kernels.
            seed: Of the search.
            options: How it searches.
            on_measured: Told of each round's measurements.
            hints: Schedules that were good elsewhere.
        """
        self.extracted = extracted
        self.failed: Counter[MeasureError] = Counter()
        self.default_seconds = math.inf
        self._allowance = allowance
        self._default = _text(extracted.default_state)
        self._known: dict[str, float] = {}
        self._has_begun = False
        self.policy = SketchPolicy(
            extracted.task,
            model,
            measurer,
            options,
            SpaceOptions(micro_kernels=extracted.isa),
            rng=Random(f"{seed} {extracted.key}"),  # noqa: S311  # a search, no secrets
            seeds=(extracted.default_state, *hints),
            on_measured=(*on_measured, self._note),
            draft=draft,
        )

    @property
    def trials(self) -> int:
        """How many schedules were measured, in this run and before."""
        return len(self._known)

    @property
    def expected_gain(self) -> float:
        """Seconds of a run of the model that the best schedule saves, as far as is known."""
        found = math.isfinite(self.default_seconds) and math.isfinite(self.policy.best_cost)
        return self.extracted.weight * (self.default_seconds - self.policy.best_cost) if found else 0.0

    def preload(self, records: Sequence[Record], *, teach: bool) -> tuple[float, ...]:
        """Count what was measured before; the costs, inf for failures.

        Args:
            records: Of the kernel.
            teach: Whether the model does not know them yet.
        """
        if self.policy.preload(records, teach=teach):
            self._known |= {state.text: cost for state, cost in known_records(self.extracted.task, records)}
            self.default_seconds = self._known.get(self._default, math.inf)
            self._has_begun = self._default in self._known
        return tuple(self._known.values())

    def tune_round(self, n: int) -> Sequence[float]:
        """Measure up to `n` schedules, the default alone first; none if all is spent."""
        granted = self._allowance.granted(n)
        if not granted:
            return ()
        try:
            costs = self.policy.tune_round(granted if self._has_begun else 1)
        except ExecutionError:  # there is nothing to compare results with: the kernel stays as it is
            self.failed[MeasureError.UNKNOWN] += 1
            return ()
        self._has_begun = True
        self._allowance.used += len(costs)
        return costs

    def settle(self) -> KeptSchedule | None:
        """Race the best few against the default; None while the default was not measured.

        The default wins where nothing is clearly faster.
        """
        if not math.isfinite(self.default_seconds):
            return None
        best = self.policy.confirm_best()
        default, cost = self.default_seconds, self.policy.best_cost
        if best is None or best.text == self._default:
            return KeptSchedule(None, default, default, self.trials)
        return KeptSchedule(history_text(best), cost, default, self.trials)

    def row(self, peak: float, kept: KeptSchedule | None = None) -> ScheduleRow:
        """How far it has come.

        Args:
            peak: Floating-point operations in a second that the machine reaches.
            kept: What the race has said.
        """
        default, cost, flop = self.default_seconds, self.policy.best_cost, self.extracted.flop_count
        if kept is not None:
            default, cost = kept.default_seconds, kept.seconds
        speed = flop / cost if flop > 0 and math.isfinite(cost) else None
        return ScheduleRow(
            self.extracted.name,
            self.extracted.weight,
            self.trials,
            dict(self.failed),
            default if math.isfinite(default) else None,
            cost if math.isfinite(cost) else None,
            speed,
            None if speed is None else speed / peak,
            kept is not None and kept.history is not None,
        )

    def _note(
        self, _: SearchTask, states: Sequence[LoopState], measurements: Sequence[ScheduleMeasurement]
    ) -> None:
        for state, measurement in zip(states, measurements, strict=True):
            self._known[state.text] = measurement.cost
            if not measurement.is_ok:
                self.failed[measurement.error] += 1
            elif state.text == self._default:
                self.default_seconds = measurement.cost


def _text(state: LoopState) -> str:
    """What a policy knows a state by."""
    bounded = with_bounds(state)
    return (state if bounded is None else bounded).text
