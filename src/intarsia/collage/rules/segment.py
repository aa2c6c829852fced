"""Large regions, between points where few values are live."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from intarsia.collage.candidates.candidate_partition import CandidatePartition, PartitionSpec
from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.collage.rules.block_item import BlockItem, block_items, held, supported_runs
from intarsia.collage.rules.branch_regions import branch_regions
from intarsia.collage.rules.cut_points import cut_points, spans
from intarsia.collage.rules.unit_support import UnitSupport
from intarsia.collage.sub_graph import SubGraph
from intarsia.op.operator_predicate import OperatorPredicate


@dataclass(frozen=True, slots=True)
class SegmentLimits:
    """How many segments are offered of each run of supported operators.

    Attributes:
        max_live: The largest number of live values at a cut point.
        max_cuts: The largest number of cut points.
        max_segments: Largest number of segments from all cut points; beyond, lengths are powers of two.
        max_branch: The largest number of operators in a branch that is cut into segments of its own.

    Raises:
        ValueError: A number below 1.
    """

    max_live: int = 2
    max_cuts: int = 256
    max_segments: int = 500
    max_branch: int = 24

    def __post_init__(self) -> None:
        """Refuse limits that allow nothing."""
        if min(self.max_live, self.max_cuts, self.max_segments, self.max_branch) < 1:
            raise ValueError(f"limits of segments are 1 or more, found {self}")


@dataclass(frozen=True, slots=True)
class SegmentPartitionRule:
    """Regions for toolchains that fuse graphs, up to the whole function (DESIGN section 7).

    In every block the calls that the toolchain takes are put in an order with the longest runs
    (`supported_runs`), which are cut where few values are live (`cut_points`). A segment is what lies between
    two cuts; it may have several results. Branches that meet again are cut in the same way by themselves, so
    that a piece of one is not only offered with pieces of its neighbours. An If, a Let, or a call of a
    function literal is in a segment as a whole, and its blocks are cut, too.

    There are at most `max_segments` or 4 times the number of cuts for each run, so that their number is
    linear in the program; making them takes their number times their length.

    Attributes:
        predicate: Such as `op.operator_predicate` gives: whether the toolchain runs a call.
        limits: Limits of the segments.
    """

    predicate: OperatorPredicate
    limits: SegmentLimits = SegmentLimits()

    def all_candidates(self, graph: DataflowGraph, spec: PartitionSpec) -> list[CandidatePartition]:
        """The segments block by block, the longest first."""
        support = UnitSupport(graph, self.predicate, spec.target.toolchain or spec.name)
        candidates: dict[int, CandidatePartition] = {}
        for run in self._runs(graph, support):
            cuts = cut_points(run, self.limits.max_live, self.limits.max_cuts)
            for begin, end in spans(cuts, self.limits.max_segments):
                inside = held(graph, run[begin:end])
                if inside and inside.bits not in candidates:
                    candidates[inside.bits] = CandidatePartition(SubGraph.of(graph, inside), spec, "segment")
        return list(candidates.values())

    def _runs(self, graph: DataflowGraph, support: UnitSupport) -> Iterator[list[BlockItem]]:
        for items in block_items(graph, support):
            yield from supported_runs(items)
            for region in branch_regions(graph, items, self.limits.max_branch):
                yield from supported_runs(region)
