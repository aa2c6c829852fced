"""What sketch rules are."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol, TypeAlias

from intarsia.autoschedule.task.search_task import SearchTask
from intarsia.native.loop_state import LoopState


class Condition(IntEnum):
    """What a rule says of a stage; the numbers are the field's."""

    PASS = 0
    APPLY = 1
    APPLY_AND_SKIP_REST = 2


@dataclass(frozen=True, slots=True)
class SketchContext:
    """What rules know beside the state.

    Attributes:
        task: What is searched.
        structure: Levels of tiles, outermost first: S of spatial axes, R of reduction axes.
    """

    task: SearchTask
    structure: str = "SSRSRS"


Children: TypeAlias = tuple[tuple[LoopState, int], ...]
"""States, each with the stage that comes next; one below 0 ends a sketch."""


class SketchRule(Protocol):
    """A way to give a stage its structure (Ansor, section 4.1)."""

    @property
    def name(self) -> str:
        """What the rule is called in reports."""

    def meets(self, policy: SketchContext, state: LoopState, stage_id: int, /) -> Condition:
        """Whether it applies to a stage, and whether the rules behind it do too."""

    def apply(self, context: SketchContext, state: LoopState, stage_id: int, /) -> Children:
        """The states that come of it; asked only where the rule applies."""
