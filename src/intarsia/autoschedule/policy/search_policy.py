"""What searches schedules of a task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from intarsia.autoschedule.policy.tuning_options import TuningOptions
from intarsia.native.loop_state import LoopState


class SearchPolicy(Protocol):
    """Searches schedules of one task (Ansor; seed ansor_minimum); for a task scheduler it is a TaskTuner."""

    @property
    def best_state(self) -> LoopState | None:
        """The schedule with the least measured cost; None while none works."""

    @property
    def best_cost(self) -> float:
        """Its cost in seconds; inf while none works."""

    @property
    def trials(self) -> int:
        """How many schedules were measured."""

    def search(self, options: TuningOptions) -> LoopState | None:
        """Search until the options end it; the best schedule, or None if none works."""

    def tune_round(self, n: int) -> Sequence[float]:
        """Measure up to `n` schedules; seconds of each, inf for a failure, none where nothing is left."""
