"""The base class of steps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from intarsia.native.loop_state.step_record import StepRecord

if TYPE_CHECKING:
    from intarsia.native.loop_state.loop_preview import LoopPreview
    from intarsia.native.loop_state.python_names import PythonNames


@dataclass(frozen=True, slots=True)
class TransformStep(StepRecord, ABC):
    """A change of the loops of a DAG, as a history records it (seed ansor_minimum).

    Fields have the order of the JSON form, as in `StepRecord`.
    """

    @abstractmethod
    def changed(self, state: LoopPreview) -> LoopPreview:
        """Return the loops after this step; `LoopState.apply` adds the step to the history.

        Raises:
            IllegalStepError: The step is not possible in this state.
        """

    @abstractmethod
    def print_python(self, names: PythonNames) -> list[str]:
        """Return this step as calls on a schedule in Python, and update the loops' names in `names`."""
