"""From random programs to those that a model expects to be fast."""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from itertools import accumulate
from random import Random

from intarsia.autoschedule.mutation import mutate
from intarsia.autoschedule.policy.candidate_scores import CandidateScores
from intarsia.autoschedule.policy.policy_options import PolicyOptions
from intarsia.autoschedule.task import SearchTask, SpaceOptions
from intarsia.native.loop_state import LoopState


def evolutionary_search(
    task: SearchTask,
    population: Sequence[LoopState],
    count: int,
    scores: CandidateScores,
    rng: Random,
    options: PolicyOptions | None = None,
    space: SpaceOptions | None = None,
    measured: Container[str] = (),
) -> tuple[LoopState, ...]:
    """The best programs of some generations, best first, all different (Ansor, section 5.1).

    A generation comes from the one before: programs are drawn, those with high scores more often, and mutated
    or copied. Where no score is above 0 all are drawn alike (the field's first implementation then breeds
    from one program only). Programs that were measured are bred from, and are not among the results.

    Args:
        task: What is searched.
        population: The first generation: programs with the ranges of all loops.
        count: How many programs are given back, at most.
        scores: Of programs, higher is better.
        rng: Decides everything.
        options: Sizes of generations, and how many there are.
        space: What mutations may draw.
        measured: Texts of programs that are known.

    Returns:
        None at all if no program works, or every one was measured.
    """
    settings, limits = options or PolicyOptions(), space or SpaceOptions()
    found: dict[str, tuple[float, LoopState]] = {}
    for left in reversed(range(settings.evolutionary_search_num_iters + 1)):
        ranked = scores.of(population)
        for score, state in zip(ranked, population, strict=True):
            if score > -math.inf and state.text not in measured:
                found.setdefault(state.text, (score, state))
        if left:
            population = _next_generation(task, population, ranked, rng, settings, limits)
    best = sorted(found.values(), key=lambda each: -each[0])[:count]
    return tuple(state for _, state in best)


def _next_generation(
    task: SearchTask,
    population: Sequence[LoopState],
    scores: Sequence[float],
    rng: Random,
    options: PolicyOptions,
    space: SpaceOptions,
) -> list[LoopState]:
    """As many programs as a generation has; fewer if too many mutations in a row fail."""
    parents = [(score, state) for score, state in zip(scores, population, strict=True) if score > -math.inf]
    states = [state for _, state in parents]
    limits = list(accumulate(max(0.0, score) for score, _ in parents))
    found: list[LoopState] = []
    failures = 0
    while states and len(found) < options.evolutionary_search_population and failures < space.most_failures:
        is_ranked = 0 < limits[-1] < math.inf
        (state,) = rng.choices(states, cum_weights=limits) if is_ranked else [rng.choice(states)]
        child: LoopState | None = state
        if rng.random() < options.evolutionary_search_mutation_prob:
            child = mutate(task, state, rng, space)
        failures = failures + 1 if child is None else 0
        if child is not None:
            found.append(child)
    return found
