"""What the rules of the initial population are."""

from __future__ import annotations

from random import Random
from typing import Protocol

from intarsia.autoschedule.task.search_task import SearchTask
from intarsia.autoschedule.task.space_options import SpaceOptions
from intarsia.native.loop_state import LoopState


class PopulationRule(Protocol):
    """A part of the way from a sketch to a program (Ansor, section 4.2)."""

    @property
    def name(self) -> str:
        """What the rule is called in reports."""

    def apply(
        self, task: SearchTask, state: LoopState, rng: Random, options: SpaceOptions, /
    ) -> LoopState | None:
        """The state with what the rule draws, or None if that is no program."""
