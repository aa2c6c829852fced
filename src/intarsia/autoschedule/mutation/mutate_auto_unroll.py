"""Mutation of an unroll pragma."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from intarsia.autoschedule.population.replay import replay_program
from intarsia.autoschedule.task.search_task import SearchTask
from intarsia.autoschedule.task.space_options import SpaceOptions
from intarsia.native.loop_state import LoopState
from intarsia.native.loop_state.steps import PragmaStep
from intarsia.native.loop_state.steps.pragma_step import AUTO_UNROLL


@dataclass(frozen=True, slots=True)
class MutateAutoUnroll:
    """Draw another value of one pragma `auto_unroll_max_step`."""

    name: str = "mutate_auto_unroll"

    def weight(self, options: SpaceOptions) -> float:
        """Return the weight of unroll mutations."""
        return options.auto_unroll_weight

    def apply(
        self, task: SearchTask, state: LoopState, rng: Random, options: SpaceOptions
    ) -> LoopState | None:
        """Return a state with the other value; None without a pragma or without another value."""
        steps = list(state.transform_steps)
        pragmas = [(index, step) for index, step in enumerate(steps) if isinstance(step, PragmaStep)]
        hints = [(index, step) for index, step in pragmas if step.pragma_type.startswith(f"{AUTO_UNROLL}$")]
        if not hints:
            return None
        index, hint = rng.choice(hints)
        kinds = [f"{AUTO_UNROLL}${number}" for number in options.unroll_steps]
        others = [kind for kind in kinds if kind != hint.pragma_type]
        if not others:
            return None
        steps[index] = replace(hint, pragma_type=rng.choice(others))
        return replay_program(task.dag, steps)
