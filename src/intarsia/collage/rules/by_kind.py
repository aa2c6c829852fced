"""Joined by their fusion kinds."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.collage.sub_graph import SubGraph
from intarsia.op import OpPatternKind


@dataclass(frozen=True, slots=True)
class ByKindSimpleCombinerRule:
    """Two are joined if both are fusable enough (seed collage_rfc).

    Attributes:
        upstream: The least fusable kind allowed upstream.
        downstream: Kinds of the downstream candidate.
    """

    upstream: OpPatternKind
    downstream: OpPatternKind

    def fires(self, upstream: SubGraph, downstream: SubGraph) -> bool:
        """Whether the kinds are at most the allowed ones."""
        return upstream.kind <= self.upstream and downstream.kind <= self.downstream
