"""The protocol of sketch rules."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol, TypeAlias

from intarsia.autoschedule.task.search_task import SearchTask
from intarsia.native.loop_state import LoopState


class Condition(IntEnum):
    """Decision of a rule for a stage; the numbers are Ansor's."""

    PASS = 0
    APPLY = 1
    APPLY_AND_SKIP_REST = 2


@dataclass(frozen=True, slots=True)
class SketchContext:
    """Context of the rules beside the state.

    Attributes:
        task: Search task.
        structure: Levels of tiles, outermost first: S of spatial axes, R of reduction axes.
    """

    task: SearchTask
    structure: str = "SSRSRS"


Children: TypeAlias = tuple[tuple[LoopState, int], ...]
"""States, each with the number of its next stage; a negative number ends a sketch."""


class SketchRule(Protocol):
    """A rule that gives a stage its loop structure (Ansor, section 4.1)."""

    @property
    def name(self) -> str:
        """Name of the rule in reports."""

    def meets(self, policy: SketchContext, state: LoopState, stage_id: int, /) -> Condition:
        """Decide whether the rule applies to a stage, and whether later rules are tried too."""

    def apply(self, context: SketchContext, state: LoopState, stage_id: int, /) -> Children:
        """Return the states that the rule generates; called only where it applies."""
