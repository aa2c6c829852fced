"""What all steps have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from intarsia.native.loop_state.python_names import PythonNames
    from intarsia.native.loop_state.state import LoopState


@dataclass(frozen=True, slots=True)
class TransformStep(ABC):
    """A change of the loops of a DAG, as it is written into a history (seed ansor_minimum).

    Fields stand in the order of the JSON form, `[code, stage_id, ...]`. Numbers of stages and loops are those
    at the time when the step is applied.

    Attributes:
        stage_id: The stage that is changed.
    """

    stage_id: int
    code: ClassVar[str]
    adds_stage: ClassVar[bool] = False

    @abstractmethod
    def changed(self, state: LoopState) -> LoopState:
        """The loops after this step; the history is the business of `LoopState.apply`.

        Raises:
            IllegalStepError: The step is not possible in this state.
        """

    @abstractmethod
    def python(self, names: PythonNames) -> list[str]:
        """This step as calls of a schedule in Python; tells `names` of the loops' new names."""
