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


def _unheard(_: str) -> None:
    return None


@dataclass(frozen=True, slots=True)
class PlacementRecord:
    """A placement with what it is predicted to take.

    Attributes:
        placement: Of all functions.
        seconds: Of @main alone: how often the others run is not known.
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
        functions: How each function was searched.
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
    report: Callable[[str], object] = _unheard,
) -> CollageResult:
    """Find the cheapest ways to give a module's sub-graphs to toolchains (seed collage_rfc).

    Functions that carry `Compiler`, or are sealed otherwise, are left alone. Toolchains that the module uses
    already, and those of functions that were searched before, @main first, rule out what is in conflict with
    them.

    Args:
        mod: The program, with types.
        specs: As `gather_partition_specs` gives them.
        estimator: Tells what candidates cost.
        boundaries: What borders cost.
        options: How to search.
        report: Told what is being done, in words.

    Raises:
        UnsupportedModelError: Nobody runs some expression.
    """
    conflicts = options.conflicts
    used = marked_toolchains(mod) if conflicts else set[str]()
    found: dict[str, FunctionCover] = {}
    open_functions = {
        var.name: function for var, function in mod.graph_functions.items() if not is_sealed(function)
    }
    for name in sorted(open_functions, key=lambda name: name != "main"):
        able = specs_beside(specs, used, conflicts)
        search = FunctionSearch(name, open_functions[name], able, estimator, boundaries, options, report)
        found[name] = search.run()
        used |= _toolchains(found[name].best.partitions)
    others = tuple(part for name, each in found.items() if name != "main" for part in each.best.partitions)
    functions = tuple(found[name] for name in open_functions)
    if "main" not in found:
        return CollageResult((PlacementRecord(Placement(others), 0.0, (0.0, 0.0)),), functions)
    best, *further = found["main"].covers
    rivals = marked_toolchains(mod) | _toolchains(others) if conflicts else set[str]()
    allowed = [
        each for each in further if not are_in_conflict(_toolchains(each.partitions), rivals, conflicts)
    ]
    placements = tuple(
        PlacementRecord(Placement((*each.partitions, *others)), each.seconds, each.interval)
        for each in (best, *allowed)
    )
    return CollageResult(placements, functions)


def _toolchains(partitions: Sequence[Partition]) -> set[str]:
    return {each.toolchain for each in partitions}
