"""Costs of a program's parts, measured on this machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager

from intarsia.collage.costs.boundary_costs import BoundaryCosts, Crossing, DeferredCrossings
from intarsia.collage.costs.captured_values import CapturedValues
from intarsia.collage.costs.measure_boundaries import measure_boundaries, measure_run
from intarsia.collage.costs.measured_cost_estimator import MeasuredCostEstimator
from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.ir import IRModule
from intarsia.measure.measure_input import Workload
from intarsia.measure.measurer import Measurer
from intarsia.measure.testbed import LocalTestbed
from intarsia.measure.work import random_operators
from intarsia.support.errors import UnsupportedModelError, UsageError
from intarsia.target import Target
from intarsia.target.reference import REFERENCE_TARGET
from intarsia.toolchain.this_host import this_host

BORDER_SHARE = 0.25
"""Share of the time that measuring borders may take."""


@contextmanager
def measured_costs(
    mod: IRModule, targets: Sequence[Target], seconds: float
) -> Iterator[tuple[MeasuredCostEstimator, BoundaryCosts]]:
    """An estimator that measures in worker processes, and the border costs; workers end with the block.

    Args:
        mod: The program; inputs of @main are random.
        targets: Targets that are measured; the reference besides.
        seconds: Time for measuring, that of borders included.

    Raises:
        UsageError: There is no @main, or an input has a symbolic shape.
        UnsupportedModelError: The program draws random numbers, so that no part can be checked.
        IntarsiaError: Measuring is impossible.
    """
    if "main" not in mod:
        raise UsageError("the module has no @main, so that there are no inputs to measure with")
    drawn = random_operators(mod)
    if drawn:
        raise UnsupportedModelError(
            f"the model draws random numbers ({', '.join(drawn)}), so no result can be checked"
        )
    with closing(LocalTestbed.open(this_host())) as testbed:
        workload = Workload(mod, str(mod.attrs.get("name", "model")))
        yield part_costs(Measurer(testbed), workload, targets, seconds)


def part_costs(
    measurer: Measurer, workload: Workload, targets: Sequence[Target], seconds: float
) -> tuple[MeasuredCostEstimator, BoundaryCosts]:
    """An estimator of what parts of a workload's program cost, and the border costs.

    Borders are measured when they are first looked at: many pairs of toolchains, each with several sizes,
    take as long as many parts, and a search that finds no mix worth trying needs none.

    Args:
        measurer: Measurer, with the database of earlier measurements.
        workload: The program, with its inputs.
        targets: Targets that are measured; the reference besides.
        seconds: Time for measuring, that of borders included.

    Raises:
        IntarsiaError: Measuring is impossible.
    """
    begun = measurer.spent
    run_seconds = measure_run(measurer)
    every, mod = dict.fromkeys((*targets, REFERENCE_TARGET)), workload.module

    def crossings() -> Mapping[tuple[str, str], Crossing]:
        return measure_boundaries(measurer, list(every), BORDER_SHARE * seconds).crossings

    boundaries = BoundaryCosts(DeferredCrossings(crossings), run_seconds=run_seconds)
    values = CapturedValues.of(workload, DataflowGraph.of(mod["main"]), measurer.testbed)
    left = max(0.0, (1 - BORDER_SHARE) * seconds - (measurer.spent - begun))
    return MeasuredCostEstimator(measurer, mod, values, run_seconds, left), boundaries
