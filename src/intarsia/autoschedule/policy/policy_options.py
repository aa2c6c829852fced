"""Options of the sketch policy."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.support.errors import UsageError


@dataclass(frozen=True, slots=True)
class PolicyOptions:
    """Options of the sketch policy; names and defaults are Ansor's (SketchPolicy) except where noted.

    Attributes:
        eps_greedy: Share of the trials that are random programs, regardless of their scores.
        retry_search_one_round_on_empty: Number of retries of a search that finds no new program.
        sample_init_min_population: Number of random programs at the start of a round.
        sample_init_use_measured_ratio: Maximum number of the best measured programs that are added, as a
            share of
            the population.
        evolutionary_search_population: Number of programs of a generation. Ansor has 2048; a program
            costs about 5 ms here (mutating 1.3, lowering and features 2 to 4), so that 128 in five
            generations take as long as measuring 64 schedules.
        evolutionary_search_num_iters: Number of generations after the first one.
        evolutionary_search_mutation_prob: Share of a generation that is mutated; others are copied.
        draft_share: Share of new candidates, the best by a draft model, that the learned model scores; 1 for
            all (Pruner, ASPLOS 2025; not in Ansor).
        descent_share: Share of the trials, the last ones, for neighbours of the best measured schedule;
            0 for none (Droplet search; not in Ansor).
        descent_batch: Number of neighbours that are measured before the best is updated.
        finalists: Number of the best schedules that are re-measured at the end, interleaved with the first
            seed;
            0 for none (Ansor takes the least of noisy costs).

    Raises:
        UsageError: A number is out of its range.
    """

    eps_greedy: float = 0.05
    retry_search_one_round_on_empty: int = 1
    sample_init_min_population: int = 50
    sample_init_use_measured_ratio: float = 0.2
    evolutionary_search_population: int = 128
    evolutionary_search_num_iters: int = 4
    evolutionary_search_mutation_prob: float = 0.85
    draft_share: float = 0.5
    descent_share: float = 0.25
    descent_batch: int = 16
    finalists: int = 5

    def __post_init__(self) -> None:
        shares = (
            *("eps_greedy", "sample_init_use_measured_ratio", "evolutionary_search_mutation_prob"),
            *("draft_share", "descent_share"),
        )
        for name in shares:
            if not 0 <= getattr(self, name) <= 1:
                raise UsageError(f"option {name} is {getattr(self, name)}; expected 0 to 1")
        for name in ("sample_init_min_population", "evolutionary_search_population", "descent_batch"):
            if getattr(self, name) < 1:
                raise UsageError(f"option {name} is {getattr(self, name)}; expected at least 1")
        for name in ("retry_search_one_round_on_empty", "evolutionary_search_num_iters", "finalists"):
            if getattr(self, name) < 0:
                raise UsageError(f"option {name} is {getattr(self, name)}; expected at least 0")
