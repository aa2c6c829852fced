"""The protocol by which a search measures schedules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from intarsia.autoschedule.task import SearchTask
from intarsia.measure.measure_result import MeasureResult
from intarsia.native.loop_state import LoopState


class ScheduleMeasurer(Protocol):
    """Measures states of a task; the failure of a state is its measurement."""

    def measure(self, task: SearchTask, states: Sequence[LoopState]) -> list[MeasureResult]:
        """Measure each state by itself.

        Args:
            task: The task; its DAG is that of the states.
            states: States with every split length chosen.

        Returns:
            A measurement for each state, in their order.
        """
        ...

    def remeasure(self, task: SearchTask, states: Sequence[LoopState]) -> list[MeasureResult]:
        """Measure a few states interleaved, so that a disturbance of the machine hits all of them.

        Args:
            task: The task; its DAG is that of the states.
            states: States with every split length chosen, usually the best of a search.

        Returns:
            A measurement for each state, in their order; their costs are comparable.
        """
        ...
