"""Joined whatever they are."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.collage.sub_graph import SubGraph


@dataclass(frozen=True, slots=True)
class JoinAnythingCombinerRule:
    """Any two that touch are joined, for toolchains that fuse graphs on their own (seed collage_rfc).

    The number of connected sub-graphs grows exponentially with the width of a program: set a depth, and see
    `SegmentPartitionRule` for large regions.
    """

    def fires(self, upstream: SubGraph, downstream: SubGraph) -> bool:  # noqa: ARG002 - as its name says
        """Always."""
        return True
