"""Mutation of the lengths of one split of a program for a GPU."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from intarsia.autoschedule.population.gpu import ThreadSizes
from intarsia.autoschedule.population.replay import replay_program
from intarsia.autoschedule.task.search_task import SearchTask
from intarsia.autoschedule.task.space_options import SpaceOptions
from intarsia.native.loop_state import LoopState

_DRAWS = 8
"""Number of draws that nearly always include other lengths, if there are any."""


@dataclass(frozen=True, slots=True)
class MutateThreadSizes:
    """Draw other lengths for one split: blocks, virtual threads, threads, tiles of a thread, or vectors.

    Moving factors keeps the product of the lengths; here any of them changes, also to one that leaves a rest.
    """

    name: str = "mutate_thread_sizes"

    def weight(self, options: SpaceOptions) -> float:
        """Return the weight of tile size mutations."""
        return options.tile_size_weight

    def apply(
        self, task: SearchTask, state: LoopState, rng: Random, _options: SpaceOptions
    ) -> LoopState | None:
        """Return the replayed state with the other lengths; None if there are none."""
        sizes = ThreadSizes(state, task.hardware)
        given = sizes.given
        if not given:
            return None
        position = rng.randrange(len(given))
        drawn = (sizes.draw(position, given[:position], rng) for _ in range(_DRAWS))
        changed = ((*given[:position], lengths, *given[position + 1 :]) for lengths in drawn)
        chosen = next((lengths for lengths in changed if lengths != given and sizes.allows(lengths)), None)
        return None if chosen is None else replay_program(task.dag, sizes.steps(chosen))
