"""What all steps have in common."""

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
    """A change of the loops of a DAG, as it is written into a history (seed ansor_minimum).

    Fields stand in the order of the JSON form, as in `StepRecord`.
    """

    @abstractmethod
    def changed(self, state: LoopPreview) -> LoopPreview:
        """The loops after this step; the history is the business of `LoopState.apply`.

        Raises:
            IllegalStepError: The step is not possible in this state.
        """

    @abstractmethod
    def python(self, names: PythonNames) -> list[str]:
        """This step as calls of a schedule in Python; tells `names` of the loops' new names."""
