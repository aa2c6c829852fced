"""Random lengths for the splits of a sketch for a GPU."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from intarsia.autoschedule.population.gpu.thread_sizes import Lengths, ThreadSizes
from intarsia.autoschedule.population.replay import replay_program
from intarsia.autoschedule.task.search_task import SearchTask
from intarsia.autoschedule.task.space_options import SpaceOptions
from intarsia.native.loop_state import LoopState


@dataclass(frozen=True, slots=True)
class FillThreadSizes:
    """Draw the lengths of each split: of blocks, virtual threads, threads, tiles of a thread, and vectors."""

    name: str = "fill_thread_sizes"

    def apply(
        self, task: SearchTask, state: LoopState, rng: Random, _options: SpaceOptions
    ) -> LoopState | None:
        """Return the state with all lengths, and the ranges of all loops."""
        sizes = ThreadSizes(state, task.hardware)
        chosen: list[Lengths] = []
        for position in range(len(sizes.splits)):
            chosen.append(sizes.draw(position, chosen, rng))
        return replay_program(task.dag, sizes.steps(chosen))
