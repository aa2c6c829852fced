"""Collage of a module: each global function is searched, the results are placements of the whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from intarsia.collage.boundary_costs import NO_BOUNDARIES, BoundaryCosts
from intarsia.collage.cost_estimator import CostEstimator
from intarsia.collage.function_cover import FunctionCover
from intarsia.collage.function_search import DEFAULT_OPTIONS, CollageOptions, FunctionSearch
from intarsia.collage.partition_spec import PartitionSpec
from intarsia.collage.placement import Placement
from intarsia.ir import Function, IRModule
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

    Functions that carry `Compiler`, or are sealed otherwise, are left alone.

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
    found = tuple(
        FunctionSearch(var.name, function, specs, estimator, boundaries, options, report).run()
        for var, function in mod.functions.items()
        if isinstance(function, Function) and not is_sealed(function)
    )
    main = next((each for each in found if each.name == "main"), None)
    others = tuple(part for each in found if each is not main for part in each.best.partitions)
    if main is None:
        return CollageResult((PlacementRecord(Placement(others), 0.0, (0.0, 0.0)),), found)
    placements = tuple(
        PlacementRecord(Placement((*each.partitions, *others)), each.seconds, each.interval)
        for each in main.covers
    )
    return CollageResult(placements, found)
