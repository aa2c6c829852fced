"""Lengths for the splits of a sketch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from intarsia.autoschedule.population.completed import completed
from intarsia.autoschedule.population.factorizations import factorizations, rounded_extents
from intarsia.autoschedule.task.search_task import SearchTask
from intarsia.autoschedule.task.space_options import SpaceOptions
from intarsia.native.loop_state import LoopState
from intarsia.native.loop_state.steps import SplitStep


@dataclass(frozen=True, slots=True)
class FillTileSize:
    """Draw the lengths of each split that has an open one, so that no rest is left.

    With `imperfect_share`, some are those of an extent a little larger, so that loops of 1009 iterations have
    tiles too (the field has none for them).
    Splits that follow others take theirs. The state is made again from its history, so that rules behind this
    one see all extents (the field's first implementation changes only the history).
    """

    name: str = "fill_tile_size"

    def apply(
        self, task: SearchTask, state: LoopState, rng: Random, options: SpaceOptions
    ) -> LoopState | None:
        """With all lengths, and the ranges of all loops."""
        steps = [
            _filled(step, rng, options) if isinstance(step, SplitStep) and None in step.lengths else step
            for step in state.transform_steps
        ]
        return completed(task.dag, steps)


def _filled(step: SplitStep, rng: Random, options: SpaceOptions) -> SplitStep:
    """A loop without iterations, which has no extent in its step, gets lengths of 1."""
    extent = step.extent or 1
    larger = rounded_extents(extent) if options.imperfect_share else ()
    if larger and rng.random() < options.imperfect_share:
        extent = rng.choice(larger)
    found = factorizations(extent, len(step.lengths), options.max_innermost_split_factor)
    return replace(step, lengths=rng.choice(found))
