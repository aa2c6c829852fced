"""Random lengths for the splits of a sketch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from intarsia.autoschedule.population.factorizations import factorizations, rounded_extents
from intarsia.autoschedule.population.replay import replay_program
from intarsia.autoschedule.task.search_task import SearchTask
from intarsia.autoschedule.task.space_options import SpaceOptions
from intarsia.native.loop_state import LoopState
from intarsia.native.loop_state.steps import SplitStep


@dataclass(frozen=True, slots=True)
class FillTileSize:
    """Draw the open lengths of each split among the factorizations of its extent.

    With `imperfect_share`, some splits are of a slightly larger extent, so that loops of 1009 iterations have
    tiles too (Ansor has none for them).
    Splits that follow others take their lengths. The state is replayed from its history, so that later rules
    see all extents (Ansor's first implementation changes only the history).
    """

    name: str = "fill_tile_size"

    def apply(
        self, task: SearchTask, state: LoopState, rng: Random, options: SpaceOptions
    ) -> LoopState | None:
        """Return the state with all lengths, and the ranges of all loops."""
        steps = [
            _draw_lengths(step, rng, options)
            if isinstance(step, SplitStep) and None in step.lengths
            else step
            for step in state.transform_steps
        ]
        return replay_program(task.dag, steps)


def _draw_lengths(step: SplitStep, rng: Random, options: SpaceOptions) -> SplitStep:
    """Draw the lengths of a split; they are 1 for a loop without iterations, which has no extent."""
    extent = step.extent or 1
    larger = rounded_extents(extent) if options.imperfect_share else ()
    if larger and rng.random() < options.imperfect_share:
        extent = rng.choice(larger)
    candidates = factorizations(extent, len(step.lengths), options.max_innermost_split_factor)
    return replace(step, lengths=rng.choice(candidates))
