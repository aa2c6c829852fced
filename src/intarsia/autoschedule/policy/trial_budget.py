"""What is left of what a search may spend."""

from __future__ import annotations

from collections.abc import Callable

from intarsia.autoschedule.policy.tuning_options import TuningOptions


class TrialBudget:
    """Counts trials and time against tuning options.

    Attributes:
        spent: How many schedules were measured.
    """

    def __init__(self, options: TuningOptions, clock: Callable[[], float]) -> None:
        """Nothing spent; time begins.

        Args:
            options: What may be spent.
            clock: Seconds from any time on.
        """
        self.spent = 0
        self._options = options
        self._clock = clock
        self._start = clock()

    def next_round(self) -> int:
        """How many schedules the next round may measure; 0 if the search is over."""
        options = self._options
        is_late = self._clock() - self._start >= options.seconds
        if is_late or (options.should_stop is not None and options.should_stop()):
            return 0
        return min(options.num_measures_per_round, options.num_measure_trials - self.spent)
