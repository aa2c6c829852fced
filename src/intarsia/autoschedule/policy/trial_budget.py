"""The remaining budget of a search."""

from __future__ import annotations

from collections.abc import Callable

from intarsia.autoschedule.policy.tuning_options import TuningOptions


class TrialBudget:
    """Counts trials and time against tuning options.

    Attributes:
        spent: Number of measured schedules.
    """

    def __init__(self, options: TuningOptions, clock: Callable[[], float]) -> None:
        """Start a budget; its time begins now.

        Args:
            options: Limits of trials and time.
            clock: Monotonic clock in seconds.
        """
        self.spent = 0
        self._options = options
        self._clock = clock
        self._start = clock()

    def next_round(self) -> int:
        """Return how many schedules the next round may measure; 0 if the search is over."""
        options = self._options
        is_late = self._clock() - self._start >= options.seconds
        if is_late or (options.should_stop is not None and options.should_stop()):
            return 0
        return min(options.num_measures_per_round, options.num_measure_trials - self.spent)
