"""Searches for programs that are worth measuring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Final

from intarsia.autoschedule.cost_model import CostModel, RandomModel
from intarsia.autoschedule.policy.candidate_scores import CandidateScores
from intarsia.autoschedule.policy.evolutionary_search import evolutionary_search
from intarsia.autoschedule.policy.measured_states import MeasuredStates
from intarsia.autoschedule.policy.pick import pick
from intarsia.autoschedule.policy.policy_options import PolicyOptions
from intarsia.autoschedule.policy.speaking import speaking
from intarsia.autoschedule.population import sample_initial_population
from intarsia.autoschedule.sketch import generate_sketches
from intarsia.autoschedule.task import SearchTask, SpaceOptions
from intarsia.native.loop_state import LoopState

_BEST_PER_TRIAL: Final = 2
"""So many programs are found for each that is measured."""
_DRAWN_PER_RANDOM: Final = 3
"""So many random programs are drawn for each that is measured: some may be known."""
_GENERATIONS_WITHOUT_MODEL: Final = 2
"""A model that knows nothing is asked for no more generations."""


class ProgramSearch:
    """Samples programs of sketches, and improves them by a cost model (the field's SearchOneRound)."""

    def __init__(
        self,
        task: SearchTask,
        model: CostModel,
        options: PolicyOptions,
        space: SpaceOptions,
        rng: Random,
        sketches: Sequence[LoopState] | None = None,
        draft: CostModel | None = None,
    ) -> None:
        """A search whose sketches are made when they are first needed.

        Args:
            task: What is searched.
            model: Ranks programs.
            options: How it searches.
            space: What is searched.
            rng: Decides everything.
            sketches: Structures that programs are drawn from; else those of the task.
            draft: Ranks new programs before the model does, if given.
        """
        self._task = task
        self._model = model
        self._options = options
        self._space = space
        self._rng = rng
        self._sketches = None if sketches is None else tuple(sketches)
        self._draft = draft

    @property
    def sketches(self) -> tuple[LoopState, ...]:
        """The structures that programs are drawn from."""
        if self._sketches is None:
            self._sketches = generate_sketches(self._task, structure=self._space.structure)
        return self._sketches

    def find(
        self,
        count: int,
        seeds: Sequence[LoopState],
        measured: MeasuredStates,
        taken: Sequence[LoopState] = (),
    ) -> tuple[LoopState, ...]:
        """Programs to be measured, most of them the best ones, some random; none of them known.

        Args:
            count: How many, at most.
            seeds: Programs to breed from beside random ones and the best measured ones.
            measured: What is known.
            taken: Programs that will be measured anyway.
        """
        known = measured.texts | {state.text for state in taken}
        population = self._population(seeds, measured)
        randoms = _DRAWN_PER_RANDOM * int(self._options.eps_greedy * count)
        drawn = self._rng.sample(population, min(randoms, len(population)))
        best = self._best(population, _BEST_PER_TRIAL * count, measured, known)
        return pick(best, drawn, count, self._options.eps_greedy, known)

    def most_promising(self, seeds: Sequence[LoopState], measured: MeasuredStates) -> LoopState | None:
        """The best program by the model among all that one search sees and nobody measured, or None.

        Args:
            seeds: Programs to breed from as well, and to choose from.
            measured: What is known.
        """
        found = self._best(self._population(seeds, measured), 1, measured, measured.texts)
        return found[0] if found else None

    def _population(self, seeds: Sequence[LoopState], measured: MeasuredStates) -> list[LoopState]:
        """The first generation: random programs, then seeds, then the best measured ones."""
        options = self._options
        sampled = sample_initial_population(
            self._task, self.sketches, options.sample_init_min_population, self._rng, self._space
        )
        most = int(options.sample_init_use_measured_ratio * options.evolutionary_search_population)
        every = (*sampled, *seeds, *measured.best(most))
        return list({state.text: state for state in every}.values())

    def _best(
        self, population: Sequence[LoopState], count: int, measured: MeasuredStates, known: frozenset[str]
    ) -> tuple[LoopState, ...]:
        options, model = self._options, speaking(self._model)
        if isinstance(model, RandomModel):
            most = min(_GENERATIONS_WITHOUT_MODEL, options.evolutionary_search_num_iters)
            options = replace(options, evolutionary_search_num_iters=most)
        scores = CandidateScores(self._task, model, self._draft, options.draft_share, measured)
        return evolutionary_search(
            self._task, population, count, scores, self._rng, options, self._space, known
        )
