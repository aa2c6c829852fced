"""Sampling of random programs from sketches."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final, Protocol

from intarsia.autoschedule.population.change_compute_location import ChangeComputeLocation
from intarsia.autoschedule.population.fill_tile_size import FillTileSize
from intarsia.autoschedule.population.gpu import FillThreadSizes, is_launchable
from intarsia.autoschedule.population.parallel import Parallel
from intarsia.autoschedule.population.replay import with_bounds
from intarsia.autoschedule.population.unroll import Unroll
from intarsia.autoschedule.population.vectorization import Vectorization
from intarsia.autoschedule.sketch.micro_kernel_sketch import MicroKernelSketch
from intarsia.autoschedule.task.search_task import SearchTask
from intarsia.autoschedule.task.space_options import SpaceOptions
from intarsia.native.loop_state import LoopState


class PopulationRule(Protocol):
    """A step from a sketch to a program (Ansor, section 4.2)."""

    @property
    def name(self) -> str:
        """Name of the rule in reports."""

    def apply(
        self, task: SearchTask, state: LoopState, rng: Random, options: SpaceOptions, /
    ) -> LoopState | None:
        """Return the state with the rule's random decisions, or None if that is not a program."""


CPU_POPULATION_RULES: Final[tuple[PopulationRule, ...]] = (
    FillTileSize(),
    ChangeComputeLocation(),
    Parallel(),
    Unroll(),
    Vectorization(),
)
"""The rules for CPUs, in order."""
GPU_POPULATION_RULES: Final[tuple[PopulationRule, ...]] = (FillThreadSizes(), Unroll())
"""The rules for GPUs, in order."""


def sample_initial_population(
    task: SearchTask,
    sketches: Sequence[LoopState],
    count: int,
    rng: Random,
    options: SpaceOptions | None = None,
) -> tuple[LoopState, ...]:
    """Draw different random programs of a task, with the ranges of all loops (Ansor, section 4.2).

    Args:
        task: Search task.
        sketches: Sketches of the task; each sample draws one of them.
        count: Number of programs; fewer if `options.most_failures` samples in a row give nothing new.
        rng: Source of all random decisions.
        options: Limits of the space; with `micro_kernels` a share of the samples are schedules of native's
            schedule
            family for the DAG, or all of them where there are no sketches.
    """
    limits = SpaceOptions() if options is None else options
    micro_kernels = _micro_kernels(task, limits)
    programs: dict[str, LoopState] = {}
    failures = 0
    while len(programs) < count and failures < limits.most_failures and (sketches or micro_kernels):
        if micro_kernels is not None and (not sketches or rng.random() < limits.micro_kernel_share):
            state = micro_kernels.draw(rng)
            state = None if state is None else with_bounds(state)
        else:
            state = sample_program(task, rng.choice(sketches), rng, limits)
        is_new = state is not None and state.text not in programs
        failures = 0 if is_new else failures + 1
        if state is not None and is_new:
            programs[state.text] = state
    return tuple(programs.values())


def _micro_kernels(task: SearchTask, options: SpaceOptions) -> MicroKernelSketch | None:
    isa = options.micro_kernels
    return None if isa is None else MicroKernelSketch.of_task(task, isa)


def sample_program(
    task: SearchTask, sketch: LoopState, rng: Random, options: SpaceOptions
) -> LoopState | None:
    """Draw a random program of a sketch, with all loop ranges; None if the draw is not a program.

    What a GPU cannot launch is no program either.
    """
    state = sketch
    for rule in GPU_POPULATION_RULES if task.hardware.is_gpu else CPU_POPULATION_RULES:
        after = rule.apply(task, state, rng, options)
        if after is None:
            return None
        state = after
    bounded = with_bounds(state)
    if bounded is not None and task.hardware.is_gpu and not is_launchable(task, bounded):
        return None
    return bounded
