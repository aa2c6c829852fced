"""What mutations are."""

from __future__ import annotations

from random import Random
from typing import Protocol

from intarsia.autoschedule.task.search_task import SearchTask
from intarsia.autoschedule.task.space_options import SpaceOptions
from intarsia.native.loop_state import LoopState


class MutationRule(Protocol):
    """A small change of a program (Ansor, section 5.1)."""

    @property
    def name(self) -> str:
        """What the rule is called in reports."""

    def weight(self, options: SpaceOptions) -> float:
        """How often it is drawn, against the others; 0 is never."""

    def apply(
        self, task: SearchTask, state: LoopState, rng: Random, options: SpaceOptions, /
    ) -> LoopState | None:
        """Another program with the ranges of all loops, or None if nothing can change, or not as drawn."""
