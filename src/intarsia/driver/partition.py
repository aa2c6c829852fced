"""Searching partitions of a model for the contest, with costs measured on this host."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from intarsia.collage.boundary_costs import BoundaryCosts
from intarsia.collage.captured_values import CapturedValues
from intarsia.collage.collage import CollageResult, collage
from intarsia.collage.dataflow_graph import DataflowGraph
from intarsia.collage.function_search import CollageOptions
from intarsia.collage.gather_specs import gather_partition_specs
from intarsia.collage.measure_boundaries import measure_boundaries
from intarsia.collage.measured_cost_estimator import MeasuredCostEstimator
from intarsia.collage.placement import Placement
from intarsia.driver.entrant import Entrant
from intarsia.driver.records import Progress, Stage
from intarsia.measure.measure_input import MeasureInput, Workload
from intarsia.measure.measurer import MeasureProgress, Measurer
from intarsia.target import Target
from intarsia.toolchain import usable_toolchains

LEAST_SECONDS = 3.0
"""With less time there is no search: borders alone take longer to measure."""

_HOST = Target.for_toolchain("reference")
"""What runs the expressions of a placed program that are in no partition: tuples and projections."""


def search_partitions(
    measurer: Measurer,
    workload: Workload,
    targets: Sequence[Target],
    seconds: float,
    report: Callable[[Progress], object],
) -> tuple[CollageResult, BoundaryCosts]:
    """Find the cheapest partitions of a workload's program.

    Args:
        measurer: Measures, and knows what was measured before.
        workload: The program, with its inputs.
        targets: Who may run parts of it.
        seconds: Time for measuring.
        report: Told how far it has come.

    Raises:
        UnsupportedModelError: Nobody runs some expression.
        IntarsiaError: Measuring is impossible.
    """
    begun = measurer.clock()

    def tell(progress: MeasureProgress) -> None:
        fraction = min(1.0, (measurer.clock() - begun) / seconds)
        report(Progress(Stage.SEARCH, fraction, progress))

    measurer.on_progress = tell
    report(Progress(Stage.SEARCH))
    boundaries = measure_boundaries(measurer, list(dict.fromkeys((*targets, _HOST))))
    graph = DataflowGraph.of(workload.module["main"])
    values = CapturedValues.of(workload, graph, measurer.testbed)
    left = seconds - (measurer.clock() - begun)
    estimator = MeasuredCostEstimator(
        measurer, workload.module, values, boundaries.run_seconds, max(0.0, left)
    )
    specs = gather_partition_specs(targets)
    options = CollageOptions(conflicts=declared_conflicts())
    return collage(workload.module, specs, estimator, boundaries, options), boundaries


def declared_conflicts() -> frozenset[tuple[str, str]]:
    """Pairs of toolchains of which one says that the other must not live in the same process."""
    return frozenset(
        (min(each.name, other), max(each.name, other))
        for each in usable_toolchains()
        for other in each.conflicts
    )


def placement_entrants(workload: Workload, found: CollageResult) -> list[Entrant]:
    """The placements as candidates for the whole model, but for those that one toolchain runs as a whole."""
    operators = next((each.operators for each in found.functions if each.name == "main"), 0)
    entrants: list[Entrant] = []
    for record in found.placements:
        partitions = record.placement.partitions
        is_whole = len(partitions) == 1 and len(partitions[0].label.split("+")) >= operators
        if not is_whole and partitions:
            entrants.append(placement_entrant(workload, record.placement, [each.name for each in entrants]))
    return entrants


def placement_entrant(workload: Workload, placement: Placement, taken: Sequence[str]) -> Entrant:
    """A placement as a candidate for the whole model, under a name that is not taken."""
    wanted, name, count = placement.summary, placement.summary, 1
    while name in taken:
        count += 1
        name = f"{wanted} ({count})"
    return Entrant(name, MeasureInput(workload, _HOST, placement.candidate))
