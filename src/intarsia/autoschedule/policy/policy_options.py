"""How a sketch policy searches."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.support.errors import UsageError


@dataclass(frozen=True, slots=True)
class PolicyOptions:
    """How a sketch policy searches; names and numbers are the field's (Ansor, SketchPolicy) but where said.

    Attributes:
        eps_greedy: Share of the trials that are random programs, whatever the model says of them.
        retry_search_one_round_on_empty: How often a search that finds nothing new is tried again.
        sample_init_min_population: How many random programs a round begins with.
        sample_init_use_measured_ratio: How many of the best measured ones are added, at most, as a share of
            the population.
        evolutionary_search_population: How many programs are a generation. The field has 2048; a program
            costs about 5 ms here (mutating 1.3, lowering and features 2 to 4), so that 128 in five
            generations take as long as measuring 64 schedules.
        evolutionary_search_num_iters: How many generations come after the first one.
        evolutionary_search_mutation_prob: Share of a generation that is mutated; others are copied.
        draft_share: Share of new candidates, the best by a draft model, that the learned model sees; with 1
            all (Pruner, ASPLOS 2025; the field has no such thing).
        descent_share: Share of the trials, the last ones, for neighbours of the best measured schedule; with
            0 there are none (Droplet search; the field's sketch policy has no such thing).
        descent_batch: How many neighbours are measured before the best is looked at again.
        finalists: How many of the best are measured again at the end, in turns and against the first seed;
            with 0 none is (the field takes the least of noisy costs).

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
