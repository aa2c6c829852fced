"""Mutation of the lengths of one split."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from random import Random

from intarsia.autoschedule.population.factorizations import divisors
from intarsia.autoschedule.population.replay import replay_program
from intarsia.autoschedule.task.search_task import SearchTask
from intarsia.autoschedule.task.space_options import SpaceOptions
from intarsia.native.loop_state import LoopState
from intarsia.native.loop_state.steps import SplitStep


@dataclass(frozen=True, slots=True)
class MutateTileSize:
    """Move a factor from one length of a split to another; splits that follow it change too."""

    name: str = "mutate_tile_size"

    def weight(self, options: SpaceOptions) -> float:
        """Return the weight of tile size mutations."""
        return options.tile_size_weight

    def apply(
        self, task: SearchTask, state: LoopState, rng: Random, options: SpaceOptions
    ) -> LoopState | None:
        """Return the replayed state with the other lengths; None if no split has a factor to move."""
        steps = list(state.transform_steps)
        indices = [index for index, step in enumerate(steps) if _is_eligible(step, options)]
        if not indices:
            return None
        index = rng.choice(indices)
        step = steps[index]
        assert isinstance(step, SplitStep), "only splits are eligible"
        lengths = _moved(step, rng, options.max_innermost_split_factor)
        if lengths is None:
            return None
        steps[index] = replace(step, lengths=lengths)
        return replay_program(task.dag, steps)


def _is_eligible(step: object, options: SpaceOptions) -> bool:
    """Whether a step splits a loop of several iterations, with lengths for all parts but the outermost.

    Splits that cannot change are left out before one is drawn, not after.
    """
    if not isinstance(step, SplitStep) or not step.inner_to_outer or (step.extent or 0) <= 1:
        return False
    return bool(step.lengths) and (step.lengths[-1] or 1) <= options.max_innermost_split_factor


def _moved(step: SplitStep, rng: Random, most_innermost: int) -> tuple[int, ...] | None:
    """Return the lengths with a divisor of one part moved to the next part of a random order, or None."""
    lengths = [length or 1 for length in step.lengths]
    parts = [max(1, (step.extent or 1) // math.prod(lengths)), *lengths]
    order = rng.sample(range(len(parts)), len(parts))
    for source, target in zip(order, [*order[1:], order[0]], strict=True):
        most = most_innermost // parts[target] if target == len(parts) - 1 else parts[source]
        factors = [factor for factor in divisors(parts[source])[1:] if factor <= most]
        if factors:
            factor = rng.choice(factors)
            parts[source] //= factor
            parts[target] *= factor
            return tuple(parts[1:])
    return None
