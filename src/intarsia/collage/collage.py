"""Collage of a module: each global function is searched, the results are placements of the whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from intarsia.collage.candidates.candidate_partition import PartitionSpec
from intarsia.collage.conflicts import are_in_conflict, marked_toolchains, specs_beside
from intarsia.collage.costs.boundary_costs import NO_BOUNDARIES, BoundaryCosts
from intarsia.collage.costs.cost_estimator import CostEstimator
from intarsia.collage.function_cover import FunctionCover
from intarsia.collage.function_search import DEFAULT_OPTIONS, CollageOptions, FunctionSearch
from intarsia.collage.placement.placement import Partition, Placement
from intarsia.ir import IRModule
from intarsia.passes.functions.sealed import is_sealed
from intarsia.support.callbacks import silent


@dataclass(frozen=True, slots=True)
class PlacementRecord:
    """A placement with what it is predicted to take.

    Attributes:
        placement: Placement of all functions.
        seconds: Predicted time of @main alone: the number of runs of other functions is unknown.
        interval: Sums of the ends of the intervals, in seconds.
    """

    placement: Placement
    seconds: float
    interval: tuple[float, float]


@dataclass(frozen=True, slots=True, eq=False)
class CollageResult:
    """What Collage has found.

    Attributes:
        placements: The best first; they differ in @main.
        functions: Search of each function.
    """

    placements: tuple[PlacementRecord, ...]
    functions: tuple[FunctionCover, ...]

    @property
    def best(self) -> Placement:
        """The placement that is predicted to be the fastest."""
        return self.placements[0].placement


def collage(
    mod: IRModule,
    specs: Sequence[PartitionSpec],
    estimator: CostEstimator,
    boundaries: BoundaryCosts = NO_BOUNDARIES,
    options: CollageOptions = DEFAULT_OPTIONS,
    report: Callable[[str], object] = silent,
) -> CollageResult:
    """Find the cheapest ways to give a module's sub-graphs to toolchains (seed collage_rfc).

    Functions that carry `Compiler`, or are sealed otherwise, are left alone. Toolchains that the module uses
    already, and those of functions that were searched before, @main first, rule out what is in conflict with
    them.

    Args:
        mod: The program, with types.
        specs: Specs, from `gather_partition_specs`.
        estimator: Estimator of candidates' costs.
        boundaries: Costs of boundaries between toolchains.
        options: Options of the search.
        report: Called with a sentence about each step of the work.

    Raises:
        UnsupportedModelError: No toolchain runs some expression.
    """
    conflicts = options.conflicts
    used = marked_toolchains(mod) if conflicts else set[str]()
    covers: dict[str, FunctionCover] = {}
    open_functions = {
        var.name: function for var, function in mod.graph_functions.items() if not is_sealed(function)
    }
    for name in sorted(open_functions, key=lambda name: name != "main"):
        able = specs_beside(specs, used, conflicts)
        search = FunctionSearch(name, open_functions[name], able, estimator, boundaries, options, report)
        covers[name] = search.run()
        used |= _toolchains(covers[name].best.partitions)
    others = tuple(part for name, cover in covers.items() if name != "main" for part in cover.best.partitions)
    functions = tuple(covers[name] for name in open_functions)
    if "main" not in covers:
        return CollageResult((PlacementRecord(Placement(others), 0.0, (0.0, 0.0)),), functions)
    best, *further = covers["main"].covers
    rivals = marked_toolchains(mod) | _toolchains(others) if conflicts else set[str]()
    allowed = [
        cover for cover in further if not are_in_conflict(_toolchains(cover.partitions), rivals, conflicts)
    ]
    placements = tuple(
        PlacementRecord(Placement((*cover.partitions, *others)), cover.seconds, cover.interval)
        for cover in (best, *allowed)
    )
    return CollageResult(placements, functions)


def _toolchains(partitions: Sequence[Partition]) -> set[str]:
    return {each.toolchain for each in partitions}
