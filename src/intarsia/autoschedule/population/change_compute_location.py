"""Random compute locations for stages without tiles."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from intarsia.autoschedule.population.compute_locations import compute_locations, is_movable
from intarsia.autoschedule.population.replay import with_bounds
from intarsia.autoschedule.sketch.stage_facts import may_be_inlined
from intarsia.autoschedule.task.search_task import SearchTask
from intarsia.autoschedule.task.space_options import SpaceOptions
from intarsia.native.loop_state import ComputeAt, LoopState


@dataclass(frozen=True, slots=True)
class ChangeComputeLocation:
    """Draw a location for each stage without tiles: inlined, at the root, or inside a loop of its reader.

    Any element-wise stage may be inlined, also one with `exp` or a branch. (Ansor's
    first implementation inlines only stages that are inside a loop already, which none is at that time, and
    looks for loops of one iteration while extents are not known.)
    """

    name: str = "change_compute_location"

    def apply(
        self, _task: SearchTask, state: LoopState, rng: Random, options: SpaceOptions
    ) -> LoopState | None:
        """Return the state with drawn locations, from the last stage to the first, and with all ranges."""
        if options.disable_change_compute_location:
            return state
        for stage_id in reversed(range(len(state.stages))):
            if not is_movable(state, stage_id):
                continue
            if any(loop.range is None for stage in state.stages for loop in stage.iters):
                bounded = with_bounds(state)
                if bounded is None:
                    return None
                state = bounded
            state = _draw_location(state, stage_id, rng)
        return with_bounds(state)


def _draw_location(state: LoopState, stage_id: int, rng: Random) -> LoopState:
    locations = compute_locations(state, stage_id)
    choice = rng.randrange(len(locations) + 2)
    if choice == 0:
        return state.compute_inline(stage_id) if may_be_inlined(state, stage_id) else state
    if choice == 1:
        is_root = state.stages[stage_id].compute_at is ComputeAt.ROOT
        return state if is_root else state.compute_root(stage_id)
    return state.compute_at(stage_id, *locations[choice - 2])
