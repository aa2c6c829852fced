"""The schedule search of one kernel, a task of the scheduler of all kernels."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Final

from intarsia.autoschedule.cost_model import CostModel
from intarsia.autoschedule.extraction import ExtractedTask
from intarsia.autoschedule.measuring.callbacks import OnMeasured
from intarsia.autoschedule.measuring.schedule_measurer import ScheduleMeasurer
from intarsia.autoschedule.policy import PolicyOptions, SketchPolicy, known_records
from intarsia.autoschedule.population import with_bounds
from intarsia.autoschedule.task import SearchTask
from intarsia.autoschedule.tuning.kernel_outlook import KernelOutlook
from intarsia.autoschedule.tuning.schedule_history import KeptSchedule
from intarsia.autoschedule.tuning.schedule_records import ScheduleRow
from intarsia.measure.measure_result import MeasureError, MeasureResult
from intarsia.native.loop_state import LoopState
from intarsia.native.loop_state.record import Record
from intarsia.native.roofline import Roofline
from intarsia.native.schedule.schedule_log import history_text
from intarsia.support.errors import ExecutionError
from intarsia.tune.run_control import RunControl, WallMeter

_OPERATIONS_PER_BYTE: Final = 8
"""Operations in the time of moving a byte: the peak over the bandwidth of a core, roughly."""


class KernelSearch:
    """A sketch policy seeded with the default schedule, within the budget of the whole search.

    Attributes:
        extracted: Task of the kernel.
        policy: Search policy.
        failed: Number of failures by kind.
        has_begun: Whether the default schedule was measured.
        seconds_in_program: Seconds of a call with the default schedule within the program; inf if unknown.
        default_seconds: Last measured seconds of the default schedule; inf before.
    """

    def __init__(
        self,
        extracted: ExtractedTask,
        model: CostModel,
        draft: CostModel,
        measurer: ScheduleMeasurer,
        control: RunControl,
        meter: WallMeter,
        seed: int,
        options: PolicyOptions | None = None,
        on_measured: Sequence[OnMeasured] = (),
        on_confirmed: Sequence[OnMeasured] = (),
        hints: Sequence[LoopState] = (),
        seconds_in_program: float = math.inf,
    ) -> None:
        """Create a search without measurements.

        Args:
            extracted: Task of the kernel.
            model: Cost model, shared by all kernels.
            draft: Draft model that prunes candidates before the cost model.
            measurer: Measurer of schedules.
            control: Limits of time and trials, shared by all kernels.
            meter: Counts the trials of all kernels.
            seed: Random seed of the search.
            options: Options of the policy.
            on_measured: Callbacks that are called with each round's measurements.
            on_confirmed: Callbacks that are called with the finalists' measurements.
            hints: Schedules that were fast on other machines, as further seeds.
            seconds_in_program: Seconds of a call with the default schedule within the program; inf if
                unknown.
        """
        self.extracted = extracted
        self.failed: Counter[MeasureError] = Counter()
        self.default_seconds = math.inf
        self.seconds_in_program = seconds_in_program
        self._control, self._meter = control, meter
        self._default = _text(extracted.default_state)
        self._costs: dict[str, float] = {}
        self.has_begun = False
        self.policy = SketchPolicy(
            extracted.task,
            model,
            measurer,
            options,
            extracted.space,
            # The seed depends on the kernel, not on its position, so that adding kernels keeps the searches
            # of others.
            rng=Random(f"{seed} {extracted.key}"),  # noqa: S311  # a search, no secrets
            seeds=(extracted.default_state, *hints),
            on_measured=(*on_measured, self._note),
            on_confirmed=on_confirmed,
            draft=draft,
        )

    @property
    def trials(self) -> int:
        """Number of measured schedules, in this run and before."""
        return len(self._costs)

    @property
    def expected_gain(self) -> float:
        """Seconds per run of the model that the best schedule saves; 0 while unknown."""
        is_known = math.isfinite(self.default_seconds) and math.isfinite(self.policy.best_cost)
        return self.extracted.weight * (self.default_seconds - self.policy.best_cost) if is_known else 0.0

    @property
    def costs(self) -> tuple[float, ...]:
        """Seconds of all measured schedules in order, inf for failures."""
        return tuple(self._costs.values())

    @property
    def work(self) -> float:
        """Operations per call, with the bytes that it moves as operations."""
        return max(0, self.extracted.flop_count) + _OPERATIONS_PER_BYTE * self.extracted.bytes_moved

    def outlook(self, roofline: Roofline) -> KernelOutlook:
        """Return what a search can gain per run of the model.

        Times within the program count until a schedule of the kernel was measured alone.
        """
        weight, cost = self.extracted.weight, min(self.default_seconds, self.policy.best_cost)
        if not math.isfinite(cost):
            cost = self.seconds_in_program
        operations, moved = self.extracted.task.dag.lane_flop_ct, self.extracted.bytes_moved
        return KernelOutlook(weight * cost, weight * roofline.bound(operations, moved))

    def measure_default(self) -> None:
        """Measure the default schedule, unless it was measured before or the budget is used up."""
        if not self.has_begun:
            self.tune_round(1)

    def preload(self, records: Sequence[Record], *, teach: bool) -> None:
        """Add earlier measurements.

        Args:
            records: Records of the kernel.
            teach: Whether to update the model with them.
        """
        if self.policy.preload(records, teach=teach):
            programs = known_records(self.extracted.task, records)
            self._costs |= {program.state.text: program.cost for program in programs}
            self.default_seconds = self._costs.get(self._default, math.inf)
            self.has_begun = self._default in self._costs

    def tune_round(self, n: int) -> Sequence[float]:
        """Measure up to `n` schedules, the default alone first; none if the budget is used up."""
        granted = self._control.granted(n)
        if not granted:
            return ()
        try:
            costs = self.policy.tune_round(granted if self.has_begun else 1)
        except ExecutionError:  # no reference result: the kernel keeps its default schedule
            self.failed[MeasureError.UNKNOWN] += 1
            return ()
        self.has_begun = True
        self._meter.trials += len(costs)
        return costs

    def confirm_finalists(self) -> KeptSchedule | None:
        """Re-measure the finalists against the default; None while the default was not measured.

        The default wins unless a finalist is clearly faster.
        """
        if not math.isfinite(self.default_seconds):
            return None
        best = self.policy.confirm_best()
        default, cost = self.default_seconds, self.policy.best_cost
        if best is None or best.text == self._default:
            return KeptSchedule(None, default, default, self.trials)
        return KeptSchedule(history_text(best), cost, default, self.trials)

    def progress_row(
        self, peak: float | None, kept: KeptSchedule | None = None, reason: str = ""
    ) -> ScheduleRow:
        """Return the progress of the search.

        Args:
            peak: Peak floating-point operations per second of the machine; None if it is not known.
            kept: Result of the finalists' confirmation, if there was one.
            reason: Why the kernel is not searched; "" if it is.
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
            None if speed is None or peak is None else speed / peak,
            kept is not None and kept.history is not None,
            reason,
        )

    def _note(
        self, _: SearchTask, states: Sequence[LoopState], measurements: Sequence[MeasureResult]
    ) -> None:
        for state, measurement in zip(states, measurements, strict=True):
            self._costs[state.text] = measurement.cost
            if not measurement.is_ok:
                self.failed[measurement.error] += 1
            elif state.text == self._default:
                self.default_seconds = measurement.cost


def _text(state: LoopState) -> str:
    """Return the text that identifies a state in a policy."""
    bounded = with_bounds(state)
    return (state if bounded is None else bounded).text
