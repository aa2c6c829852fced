"""Who measures schedules, as those who search see it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from intarsia.autoschedule.measuring.schedule_measurement import ScheduleMeasurement
from intarsia.autoschedule.task import SearchTask
from intarsia.native.loop_state import LoopState


class ScheduleMeasurer(Protocol):
    """Measures states of a task; what goes wrong with one of them is its measurement."""

    def measure(self, task: SearchTask, states: Sequence[LoopState]) -> list[ScheduleMeasurement]:
        """Measure each state once.

        Args:
            task: Whose DAG the states are of.
            states: With every split length chosen.

        Returns:
            A measurement for each state, in their order.
        """
        ...

    def remeasure(self, task: SearchTask, states: Sequence[LoopState]) -> list[ScheduleMeasurement]:
        """Measure a few states against one another: in turns, so that all meet the same disturbances.

        Args:
            task: Whose DAG the states are of.
            states: With every split length chosen; the best of a search, as a rule.

        Returns:
            A measurement for each state, in their order; their costs can be compared.
        """
        ...
