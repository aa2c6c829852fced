"""What a mix of toolchains can gain over the best one alone, judged by single operators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

from intarsia.collage.candidates.candidate_partition import CandidatePartition
from intarsia.collage.rules.must_be_lowered import must_be_lowered


@dataclass(frozen=True, slots=True)
class MixGain:
    """A judgement of mixes.

    Attributes:
        share: Share of the program's work whose operators were measured on two toolchains or more, 0 to 1.
        factor: Time of these operators on the best toolchain that runs the whole program, relative to their
            time with each on its own best; 1 or more, and infinite if no toolchain runs the whole. Boundaries
            between toolchains are not counted, so that a mix gains less.
    """

    share: float
    factor: float


def mix_gain(estimates: Mapping[CandidatePartition, float], shares: Mapping[int, float]) -> MixGain:
    """Judge mixes by single operators; a factor of 1 and a share of 0 if none was measured twice.

    Args:
        estimates: Seconds of candidates that work.
        shares: Share of each node in the time of the program (`work_shares`).
    """
    seconds: dict[int, dict[str, float]] = {}
    for candidate, cost in estimates.items():
        if sum(map(must_be_lowered, candidate.sub_graph.exprs)) != 1:
            continue
        owner = next((index for index in candidate.sub_graph.inside if index in shares), None)
        if owner is not None:
            by_target = seconds.setdefault(owner, {})
            target = str(candidate.spec.target)
            by_target[target] = min(cost, by_target.get(target, cost))
    compared = {index: by_target for index, by_target in seconds.items() if len(by_target) > 1}
    share = sum(shares[index] for index in compared)
    # A toolchain that lacks an operator is no rival of a mix, however fast it is on all the others.
    alone = [
        sum(by_target.get(target, min(by_target.values())) for by_target in compared.values())
        for target in _whole_targets(estimates, shares)
    ]
    mixed = sum(min(by_target.values()) for by_target in compared.values())
    return MixGain(share, min(alone, default=inf) / mixed if mixed > 0 else 1.0)


def _whole_targets(
    estimates: Mapping[CandidatePartition, float], shares: Mapping[int, float]
) -> frozenset[str]:
    """Return the targets that run all operators with a share of the time."""
    return frozenset(
        str(candidate.spec.target)
        for candidate in estimates
        if all(index in candidate.sub_graph.inside for index in shares)
    )
