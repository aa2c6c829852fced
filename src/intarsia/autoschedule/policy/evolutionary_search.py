"""Evolutionary search for programs that a model scores highly."""

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
    """Return the best programs of several generations, best first, all different (Ansor, section 5.1).

    A generation is bred from the one before: programs are drawn in proportion to their scores, and mutated
    or copied. Where no score is above 0 all are drawn with equal probability (Ansor's first implementation
    then breeds
    from one program only). Measured programs are bred from, but not returned.

    Args:
        task: Search task.
        population: First generation: programs with the ranges of all loops.
        count: Maximum number of programs that are returned.
        scores: Scores of programs, higher is better.
        rng: Source of all random decisions.
        options: Size and number of generations.
        space: Limits of the space of mutations.
        measured: Texts of measured programs.

    Returns:
        The programs; none if no program can be lowered, or all were measured.
    """
    settings, limits = options or PolicyOptions(), space or SpaceOptions()
    unmeasured: dict[str, tuple[float, LoopState]] = {}
    for generations_left in reversed(range(settings.evolutionary_search_num_iters + 1)):
        ranked = scores.of(population)
        for score, state in zip(ranked, population, strict=True):
            if score > -math.inf and state.text not in measured:
                unmeasured.setdefault(state.text, (score, state))
        if generations_left:
            population = _breed_generation(task, population, ranked, rng, settings, limits)
    best = sorted(unmeasured.values(), key=lambda scored: -scored[0])[:count]
    return tuple(state for _, state in best)


def _breed_generation(
    task: SearchTask,
    population: Sequence[LoopState],
    scores: Sequence[float],
    rng: Random,
    options: PolicyOptions,
    space: SpaceOptions,
) -> list[LoopState]:
    """Breed a generation; it is smaller if too many mutations in a row fail."""
    parents = [(score, state) for score, state in zip(scores, population, strict=True) if score > -math.inf]
    states = [state for _, state in parents]
    limits = list(accumulate(max(0.0, score) for score, _ in parents))
    children: list[LoopState] = []
    failures = 0
    while (
        states and len(children) < options.evolutionary_search_population and failures < space.most_failures
    ):
        # random.choices needs a positive finite total; otherwise parents are drawn uniformly.
        is_ranked = 0 < limits[-1] < math.inf
        (state,) = rng.choices(states, cum_weights=limits) if is_ranked else [rng.choice(states)]
        child: LoopState | None = state
        if rng.random() < options.evolutionary_search_mutation_prob:
            child = mutate(task, state, rng, space)
        failures = failures + 1 if child is None else 0
        if child is not None:
            children.append(child)
    return children
