"""Mutation of the loop that a stage is computed in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from intarsia.autoschedule.population.compute_locations import compute_locations, is_movable
from intarsia.autoschedule.population.replay import replay_program
from intarsia.autoschedule.task.search_task import SearchTask
from intarsia.autoschedule.task.space_options import SpaceOptions
from intarsia.native.loop_state import LoopState
from intarsia.native.loop_state.steps import ComputeAtStep


@dataclass(frozen=True, slots=True)
class MutateComputeLocation:
    """Move a stage without tiles, which is computed in a loop, to another loop.

    The loops are those of the state that the step changed. (The field's first implementation takes loops of
    the last state, although later steps have renumbered them.)
    """

    name: str = "mutate_compute_location"

    def weight(self, options: SpaceOptions) -> float:
        """Return the weight of location mutations; 0 where stages stay where sketches put them."""
        return 0.0 if options.disable_change_compute_location else options.compute_location_weight

    def apply(
        self, task: SearchTask, state: LoopState, rng: Random, _options: SpaceOptions
    ) -> LoopState | None:
        """Return the replayed state with the other loop; None without such a stage or another loop."""
        steps = list(state.transform_steps)
        indices = [index for index, step in enumerate(steps) if isinstance(step, ComputeAtStep)]
        rng.shuffle(indices)
        for index in indices:
            step = steps[index]
            assert isinstance(step, ComputeAtStep), "only these are listed"
            # Locations are those of the state before the step: later steps may have renumbered loops.
            before = replay_program(task.dag, steps[:index])
            if before is None or not is_movable(before, step.stage_id):
                continue
            here = step.target_stage_id, step.target_iter_id
            others = [location for location in compute_locations(before, step.stage_id) if location != here]
            if others:
                stage_id, iter_id = rng.choice(others)
                steps[index] = replace(step, target_stage_id=stage_id, target_iter_id=iter_id)
                return replay_program(task.dag, steps)
        return None
