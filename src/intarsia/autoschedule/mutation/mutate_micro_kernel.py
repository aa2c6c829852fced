"""Mutation of one knob of a micro-kernel schedule."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from intarsia.autoschedule.population.replay import with_bounds
from intarsia.autoschedule.sketch.micro_kernel_sketch import MicroKernelSketch
from intarsia.autoschedule.task.search_task import SearchTask
from intarsia.autoschedule.task.space_options import SpaceOptions
from intarsia.native.loop_state import LoopState


@dataclass(frozen=True, slots=True)
class MutateMicroKernel:
    """Change one knob of a schedule of native's schedule family: a tile, a loop order, a packed copy.

    Lengths that depend on each other change together, also to lengths that leave a remainder, which no moving
    of
    factors finds.
    """

    name: str = "mutate_micro_kernel"

    def weight(self, options: SpaceOptions) -> float:
        """Return the weight of these mutations; 0 where the space has no micro-kernels."""
        return 0.0 if options.micro_kernels is None else options.micro_kernel_weight

    def apply(
        self, task: SearchTask, state: LoopState, rng: Random, options: SpaceOptions
    ) -> LoopState | None:
        """Return the other schedule; None if the state is not of the family."""
        if options.micro_kernels is None:
            return None
        sketch = MicroKernelSketch.of_task(task, options.micro_kernels)
        moved = None if sketch is None else sketch.draw_neighbour(state, rng)
        return None if moved is None else with_bounds(moved)
