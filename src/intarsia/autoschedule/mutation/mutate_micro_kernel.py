"""Another decision of a rule."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from intarsia.autoschedule.population.completed import with_bounds
from intarsia.autoschedule.sketch.micro_kernel_sketch import MicroKernelSketch
from intarsia.autoschedule.task.search_task import SearchTask
from intarsia.autoschedule.task.space_options import SpaceOptions
from intarsia.native.loop_state import LoopState


@dataclass(frozen=True, slots=True)
class MutateMicroKernel:
    """Decide one thing otherwise in a schedule that native's rule can make: a tile, an order, a copy.

    Lengths that belong together change together, and to lengths that leave a rest, which no moving of
    factors finds.
    """

    name: str = "mutate_micro_kernel"

    def weight(self, options: SpaceOptions) -> float:
        """As asked for, if these schedules are searched at all."""
        return 0.0 if options.micro_kernels is None else options.micro_kernel_weight

    def apply(
        self, task: SearchTask, state: LoopState, rng: Random, options: SpaceOptions
    ) -> LoopState | None:
        """The other schedule; None if the state is no such schedule."""
        if options.micro_kernels is None:
            return None
        sketch = MicroKernelSketch.of_task(task, options.micro_kernels)
        moved = None if sketch is None else sketch.moved(state, rng)
        return None if moved is None else with_bounds(moved)
