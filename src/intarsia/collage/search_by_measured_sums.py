"""Search placements of a program by measured sums: costs of its parts and of the borders between them.

`placement_search` builds such placements into programs, and compares whole programs end to end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from intarsia.collage.collage import CollageResult, collage
from intarsia.collage.conflicts import declared_conflicts
from intarsia.collage.costs.boundary_costs import BoundaryCosts
from intarsia.collage.costs.measured_costs import part_costs
from intarsia.collage.evolution.placement_space import is_whole
from intarsia.collage.function_search import DEFAULT_OPTIONS, CollageOptions
from intarsia.collage.gather_specs import gather_partition_specs
from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.collage.placement.placement import Placement
from intarsia.ir import IRModule
from intarsia.measure.measure_input import Candidate, Workload
from intarsia.measure.measurer import Measurer
from intarsia.target import Target

LEAST_SEARCH = 3.0
"""Least seconds of a search: measuring the borders alone takes longer."""


@dataclass(frozen=True, slots=True, eq=False)
class SearchedPartitions:
    """The result of a search by measured sums.

    Attributes:
        result: Placements and covers.
        boundaries: Costs of the boundaries between their parts.
    """

    result: CollageResult
    boundaries: BoundaryCosts

    def predicted_seconds(self, candidate: Candidate) -> float | None:
        """Return the sum by which the search has chosen a candidate; None if it is none of its placements."""
        records = {record.placement.candidate.digest: record.seconds for record in self.result.placements}
        return records.get(candidate.digest)


def search_by_measured_sums(
    measurer: Measurer,
    workload: Workload,
    targets: Sequence[Target],
    seconds: float,
    covers: int = DEFAULT_OPTIONS.covers,
    worth: float = DEFAULT_OPTIONS.worth,
    judge_seconds: float = DEFAULT_OPTIONS.judge_seconds,
) -> SearchedPartitions:
    """Find the cheapest placements of a workload's program.

    Args:
        measurer: Measurer, with the database of earlier measurements.
        workload: The program, with its inputs.
        targets: Targets that may run parts of it.
        seconds: Time for measuring.
        covers: Number of the cheapest covers.
        worth: Factor that a mix must be able to gain (`CollageOptions`).
        judge_seconds: Time in which single operators must have shown that it can.

    Raises:
        UnsupportedModelError: No toolchain runs some expression.
        IntarsiaError: Measuring is impossible.
    """
    estimator, boundaries = part_costs(measurer, workload, targets, seconds)
    options = CollageOptions(
        covers=covers, conflicts=declared_conflicts(), worth=worth, judge_seconds=judge_seconds
    )
    result = collage(workload.module, gather_partition_specs(targets), estimator, boundaries, options)
    return SearchedPartitions(result, boundaries.without_deferred())


def mixed_placements(mod: IRModule, collage: CollageResult) -> list[Placement]:
    """Return the placements of a search without those that give the whole program to a toolchain."""
    graph = DataflowGraph.of(mod["main"])
    placements = [record.placement for record in collage.placements]
    return [item for item in placements if item.partitions and not is_whole(graph, item)]
