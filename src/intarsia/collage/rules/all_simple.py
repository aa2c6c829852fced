"""All pairs that touch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from intarsia.collage.candidates.candidate_partition import CandidatePartition
from intarsia.collage.rules.candidate_pool import CandidatePool
from intarsia.collage.rules.combiner_rule import SimpleCombinerRule
from intarsia.collage.sub_graph import SubGraph, are_touching


@dataclass(frozen=True, slots=True)
class AllSimpleCombinerRule:
    """Two candidates that touch become one, if one of some simple rules accepts them (seed collage_rfc).

    Only candidates that have an edge between them are looked at.

    Attributes:
        rules: The simple rules.
    """

    rules: tuple[SimpleCombinerRule, ...]

    def combined(self, pool: CandidatePool, newest: CandidatePartition) -> Iterator[CandidatePartition]:
        """The newest with each of its neighbours, before it and behind it."""
        here = newest.sub_graph
        for other in pool.downstream_of(here):
            if self._fires(here, other.sub_graph):
                yield from _none_or_one(pool.union((newest, other)))
        for other in pool.upstream_of(here):
            if self._fires(other.sub_graph, here):
                yield from _none_or_one(pool.union((other, newest)))

    def _fires(self, upstream: SubGraph, downstream: SubGraph) -> bool:
        return any(rule.fires(upstream, downstream) for rule in self.rules) and are_touching(
            upstream, downstream
        )


def _none_or_one(joined: CandidatePartition | None) -> Iterator[CandidatePartition]:
    if joined is not None:
        yield joined
