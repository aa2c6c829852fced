"""What joins candidates to larger ones (seed collage_rfc, CombinerRule)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from intarsia.collage.candidates.candidate_partition import CandidatePartition
from intarsia.collage.rules.candidate_pool import CandidatePool
from intarsia.collage.sub_graph import SubGraph


class SimpleCombinerRule(Protocol):
    """Says whether two candidates that touch are joined."""

    def fires(self, upstream: SubGraph, downstream: SubGraph) -> bool:
        """Whether these two are; the second uses a value of the first."""


class CombinerRule(Protocol):
    """Joins candidates of one spec. Combiner rules are values."""

    def combined(self, pool: CandidatePool, newest: CandidatePartition) -> Iterator[CandidatePartition]:
        """Every union that the newest candidate is a part of; the others are in the pool, as it is itself.

        Called once for each candidate as it comes into the pool, so that every pair is tried, when the later
        of the two comes. The unions may be invalid, and may have been found before.
        """
