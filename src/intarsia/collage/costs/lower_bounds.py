"""What candidates cost at least, judged by what their operators cost one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from intarsia.collage.candidates.candidate_partition import CandidatePartition
from intarsia.collage.candidates.cost import CostKind
from intarsia.op import OpPatternKind

HEAVY_SHARE: Final = 0.7
"""What fusing leaves of the cost of a convolution or a matrix product, at least."""

LIGHT_SHARE: Final = 0.15
"""What fusing leaves of any other operator's cost, at least: it may save a pass over memory altogether."""

GUESS_SHARE: Final = 0.4
"""Of an operator's guessed part of the whole program's time, what it takes at least."""

_MOST: Final = 0.9
"""A candidate with so large a share stands for the whole program."""


def lower_bounds(
    candidates: Sequence[CandidatePartition],
    estimates: Mapping[CandidatePartition, float],
    shares: Mapping[int, float],
) -> dict[CandidatePartition, float]:
    """Seconds that candidates of unknown cost take at least.

    The bound is an assumption about engines, not a proof. Fusing saves no more than the shares say of the
    cheapest way to run each operator by itself; and where that is not known, an operator takes no less than
    `GUESS_SHARE` of its part of the fastest candidate for the whole program. A search with such bounds is
    optimal if they hold.

    Args:
        candidates: Candidates of one graph.
        estimates: Seconds of candidates that are known and valid.
        shares: The guessed share of each node in the time of the whole (`work_shares`).

    Returns:
        A bound for each candidate of unknown cost.
    """
    single: dict[int, float] = {}
    rates = [0.0]
    for candidate, seconds in estimates.items():
        owned = [index for index in candidate.sub_graph.inside if index in shares]
        if len(owned) == 1:
            single[owned[0]] = min(seconds, single.get(owned[0], seconds))
        covered = sum(shares[index] for index in owned)
        if covered > _MOST:
            rates.append(seconds / covered)
    whole = min(rates[1:], default=0.0)
    least = (
        {
            index: single[index] * _kept(candidates[0], index)
            if index in single
            else GUESS_SHARE * share * whole
            for index, share in shares.items()
        }
        if candidates
        else {}
    )
    return {
        candidate: sum(least.get(index, 0.0) for index in candidate.sub_graph.inside)
        for candidate in candidates
        if candidate.cost.kind is CostKind.UNKNOWN
    }


def _kept(candidate: CandidatePartition, index: int) -> float:
    kind = candidate.sub_graph.graph.kinds[index]
    return HEAVY_SHARE if kind is OpPatternKind.OUT_ELEMWISE_FUSABLE else LIGHT_SHARE
