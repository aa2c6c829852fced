"""The search for schedules of GPU kernels: by measured times, or by their static cost where no GPU is."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from random import Random
from typing import Final

from intarsia.autoschedule.cost_model import CostModel, StaticGpuModel, usual_gpu_model
from intarsia.autoschedule.measuring import OnMeasured, ScheduleMeasurer
from intarsia.autoschedule.policy.measured_states import MeasuredStates
from intarsia.autoschedule.policy.policy_options import PolicyOptions
from intarsia.autoschedule.policy.program_search import ProgramSearch
from intarsia.autoschedule.policy.sketch_policy import SketchPolicy
from intarsia.autoschedule.population import with_bounds
from intarsia.autoschedule.population.gpu import every_history, every_program
from intarsia.autoschedule.sketch import generate_sketches
from intarsia.autoschedule.task import SearchTask
from intarsia.autoschedule.task.space_options import GPU_SPACE
from intarsia.native.gpu.default_gpu_state import default_gpu_state, gpu_kernels, lower_to_kernels
from intarsia.native.gpu.schedule_cost import schedule_cost
from intarsia.native.gpu.static_cost import FACTS, GpuFacts
from intarsia.native.loop_state import LoopState

_FEW: Final = 256
"""Number of programs up to which all are looked at."""
_OLDEST: Final = "sm_80"


def least_static_cost(
    task: SearchTask,
    facts: GpuFacts = FACTS[_OLDEST],
    options: PolicyOptions | None = None,
    seed: int = 0,
) -> LoopState:
    """Search the schedule of the least static cost, without a GPU; that of the rules if none costs less.

    A schedule has to cost less than the kernels of a program without a log, which also have attention in one
    kernel.

    All programs are compared where they are few; otherwise the search is that of `SketchPolicy` before a
    measurement. Nothing is known about times.

    Args:
        task: Search task of a GPU.
        facts: Peaks of the GPU.
        options: Sizes of populations.
        seed: Random seed of the search.
    """
    model = StaticGpuModel(facts)
    seeds = [default_gpu_state(task.dag)]
    sketches = generate_sketches(task)
    if _count_programs(task, sketches) <= _FEW:
        candidates = [
            *_bounded(seeds),
            *(state for sketch in sketches for state in every_program(task, sketch)),
        ]
    else:
        rng = Random(seed)  # noqa: S311 - a search, no secrets
        settings = options or PolicyOptions()
        search = ProgramSearch(task, model, settings, GPU_SPACE, rng, sketches)
        best = search.find_most_promising(_bounded(seeds), MeasuredStates())
        candidates = [*_bounded(seeds), *([] if best is None else [best])]
    scores = model.predict(task, candidates)
    # The first of equals is the rules' schedule.
    best = candidates[int(scores.argmax())] if candidates else seeds[0]
    return best if _costs_less(task, best, facts) else seeds[0]


def gpu_policy(
    task: SearchTask,
    measurer: ScheduleMeasurer,
    facts: GpuFacts = FACTS[_OLDEST],
    options: PolicyOptions | None = None,
    model: CostModel | None = None,
    seed: int = 0,
    on_confirmed: Sequence[OnMeasured] = (),
) -> SketchPolicy:
    """Create a sketch policy for GPU kernels, with the schedule of the rules as its seed.

    Args:
        task: Search task of a GPU.
        measurer: Measurer of schedules on the GPU.
        facts: Peaks of the GPU, for the static cost that prunes candidates.
        options: Options of the policy.
        model: Cost model; None for `usual_gpu_model`.
        seed: Random seed of the search.
        on_confirmed: Callbacks that are called with the finalists' measurements, the winner's marked.
    """
    return SketchPolicy(
        task,
        usual_gpu_model(facts) if model is None else model,
        measurer,
        options,
        GPU_SPACE,
        Random(seed),  # noqa: S311 - a search, no secrets
        seeds=[default_gpu_state(task.dag)],
        on_confirmed=on_confirmed,
        draft=StaticGpuModel(facts),
    )


def _costs_less(task: SearchTask, state: LoopState, facts: GpuFacts) -> bool:
    """Return whether a schedule costs less than the kernels that no schedule is logged for."""
    kernels = lower_to_kernels(task.dag, state)
    return schedule_cost(kernels, facts) < schedule_cost(gpu_kernels(task.dag), facts)


def _bounded(states: Sequence[LoopState]) -> list[LoopState]:
    return [state for state in map(with_bounds, states) if state is not None]


def _count_programs(task: SearchTask, sketches: Sequence[LoopState]) -> int:
    """Return the number of programs of all sketches, or a number above `_FEW` if there are more."""
    return sum(sum(1 for _ in islice(every_history(task, sketch), _FEW + 1)) for sketch in sketches)
