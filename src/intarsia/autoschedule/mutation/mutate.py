"""Mutation of a program by one random rule."""

from __future__ import annotations

from random import Random
from typing import Final, Protocol

from intarsia.autoschedule.mutation.mutate_auto_unroll import MutateAutoUnroll
from intarsia.autoschedule.mutation.mutate_compute_location import MutateComputeLocation
from intarsia.autoschedule.mutation.mutate_micro_kernel import MutateMicroKernel
from intarsia.autoschedule.mutation.mutate_parallel import MutateParallel
from intarsia.autoschedule.mutation.mutate_thread_sizes import MutateThreadSizes
from intarsia.autoschedule.mutation.mutate_tile_size import MutateTileSize
from intarsia.autoschedule.population.gpu import is_launchable
from intarsia.autoschedule.task.search_task import SearchTask
from intarsia.autoschedule.task.space_options import SpaceOptions
from intarsia.native.loop_state import LoopState


class MutationRule(Protocol):
    """A small change of a program (Ansor, section 5.1)."""

    @property
    def name(self) -> str:
        """Name of the rule in reports."""

    def weight(self, options: SpaceOptions) -> float:
        """Return the relative probability of the rule; 0 is never."""

    def apply(
        self, task: SearchTask, state: LoopState, rng: Random, options: SpaceOptions, /
    ) -> LoopState | None:
        """Return a changed program with all loop ranges, or None if the drawn change is impossible."""


CPU_MUTATION_RULES: Final[tuple[MutationRule, ...]] = (
    MutateTileSize(),
    MutateAutoUnroll(),
    MutateComputeLocation(),
    MutateParallel(),
    MutateMicroKernel(),
)
"""The mutations for CPUs; the last one is drawn only where the space has micro-kernels."""
GPU_MUTATION_RULES: Final[tuple[MutationRule, ...]] = (
    MutateThreadSizes(),
    MutateTileSize(),
    MutateAutoUnroll(),
)
"""The mutations for GPUs."""


def mutate(
    task: SearchTask, state: LoopState, rng: Random, options: SpaceOptions | None = None
) -> LoopState | None:
    """Return another program by one random mutation, with the ranges of all loops (Ansor, section 5.1).

    Args:
        task: Search task.
        state: A program of the task.
        rng: Source of all random decisions.
        options: Weights of the mutations, and limits of the space.

    Returns:
        The program, or None if the drawn mutation is impossible here; callers try again.
    """
    limits = SpaceOptions() if options is None else options
    is_gpu = task.hardware.is_gpu
    rules = GPU_MUTATION_RULES if is_gpu else CPU_MUTATION_RULES
    weights = [rule.weight(limits) for rule in rules]
    if not any(weights):
        return None
    (rule,) = rng.choices(rules, weights)
    after = rule.apply(task, state, rng, limits)
    return None if after is None or (is_gpu and not is_launchable(task, after)) else after
