"""The search for programs that are worth measuring."""

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
from intarsia.autoschedule.policy.scoring_model import scoring_model
from intarsia.autoschedule.population import sample_initial_population
from intarsia.autoschedule.sketch import generate_sketches
from intarsia.autoschedule.task import SearchTask, SpaceOptions
from intarsia.native.loop_state import LoopState

_BEST_PER_TRIAL: Final = 2
"""Number of searched programs per measured program."""
_DRAWN_PER_RANDOM: Final = 3
"""Number of random programs that are drawn per measured one: some may have been measured before."""
_GENERATIONS_WITHOUT_MODEL: Final = 2
"""Maximum number of generations with random scores: more would not improve them."""


class ProgramSearch:
    """Samples programs of sketches, and improves them by a cost model (Ansor's SearchOneRound)."""

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
        """Create a search that generates its sketches on first use.

        Args:
            task: Search task.
            model: Cost model that ranks programs.
            options: Options of the search.
            space: Limits of the space.
            rng: Source of all random decisions.
            sketches: Sketches that programs are drawn from; None for those of the task.
            draft: Model that prunes new programs before the cost model, if given.
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
        """Sketches that programs are drawn from."""
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
        """Find programs to measure, most of them the best ones, some random; none was measured before.

        Args:
            count: Maximum number of programs.
            seeds: Programs to breed from beside random ones and the best measured ones.
            measured: Measured programs.
            taken: Programs that will be measured anyway, and are not returned.
        """
        excluded = measured.texts | {state.text for state in taken}
        population = self._population(seeds, measured)
        randoms = _DRAWN_PER_RANDOM * int(self._options.eps_greedy * count)
        drawn = self._rng.sample(population, min(randoms, len(population)))
        best = self._best(population, _BEST_PER_TRIAL * count, measured, excluded)
        return pick(best, drawn, count, self._options.eps_greedy, excluded)

    def find_most_promising(self, seeds: Sequence[LoopState], measured: MeasuredStates) -> LoopState | None:
        """Find the unmeasured program with the best score, or None.

        Args:
            seeds: Programs to breed and to choose from in addition.
            measured: Measured programs.
        """
        best = self._best(self._population(seeds, measured), 1, measured, measured.texts)
        return best[0] if best else None

    def _population(self, seeds: Sequence[LoopState], measured: MeasuredStates) -> list[LoopState]:
        """Return the first generation: random programs, then seeds, then the best measured ones."""
        options = self._options
        sampled = sample_initial_population(
            self._task, self.sketches, options.sample_init_min_population, self._rng, self._space
        )
        most = int(options.sample_init_use_measured_ratio * options.evolutionary_search_population)
        every = (*sampled, *seeds, *measured.best(most))
        return list({state.text: state for state in every}.values())

    def _best(
        self, population: Sequence[LoopState], count: int, measured: MeasuredStates, excluded: frozenset[str]
    ) -> tuple[LoopState, ...]:
        options, model = self._options, scoring_model(self._model)
        if isinstance(model, RandomModel):
            most = min(_GENERATIONS_WITHOUT_MODEL, options.evolutionary_search_num_iters)
            options = replace(options, evolutionary_search_num_iters=most)
        scores = CandidateScores(self._task, model, self._draft, options.draft_share, measured)
        return evolutionary_search(
            self._task, population, count, scores, self._rng, options, self._space, excluded
        )
