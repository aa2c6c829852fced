"""Phases 2 and 3 for one function: candidates, their costs, and the cheapest covers (seed collage_rfc)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from intarsia.collage.boundary_costs import NO_BOUNDARIES, BoundaryCosts
from intarsia.collage.candidate_partition import CandidatePartition
from intarsia.collage.cost import Cost, CostKind
from intarsia.collage.cost_estimator import CostEstimator, Estimate
from intarsia.collage.cover_of_graph import GraphCover
from intarsia.collage.dataflow_graph import DataflowGraph
from intarsia.collage.function_cover import CoverRecord, FunctionCover
from intarsia.collage.gather_specs import HOST
from intarsia.collage.lower_bounds import lower_bounds
from intarsia.collage.partition_spec import PartitionSpec
from intarsia.collage.prune import collect_candidates
from intarsia.collage.rules.must_be_lowered import must_be_lowered
from intarsia.collage.search import (
    INVALID,
    CoverProblem,
    Infeasible,
    SearchOptions,
    SearchResult,
    lazy_search,
    search,
)
from intarsia.collage.shrinkage import MeasuredSeconds, shrunk
from intarsia.collage.work_shares import work_shares
from intarsia.ir import Function
from intarsia.support.errors import UnsupportedModelError


@dataclass(frozen=True, slots=True)
class CollageOptions:
    """How a search is held.

    Attributes:
        covers: How many of the cheapest covers are wanted.
        max_candidates: For each spec; 0 for any number.
        search: How hard to search.
        last_resort: Name of the spec that is tried only where no other can run the nodes: the reference,
            which may take minutes for what others do in milliseconds. None: there is none.
        single_share: Share of the time that single operators may take, before larger candidates are tried.
        shrink: Whether costs are shrunk by their uncertainty.
        conflicts: Pairs of toolchains, each in order of the alphabet, that must not occur together.
    """

    covers: int = 4
    max_candidates: int = 3_000
    search: SearchOptions = SearchOptions()  # noqa: RUF009 - frozen
    last_resort: str | None = "reference"
    single_share: float = 0.4
    shrink: bool = True
    conflicts: frozenset[tuple[str, str]] = frozenset()


_BATCH: Final = 16
"""Candidates that are estimated before the time is looked at."""

DEFAULT_OPTIONS = CollageOptions()


def _unheard(_: str) -> None:
    return None


@dataclass(eq=False)
class FunctionSearch:
    """The search for the cheapest covers of a function.

    The whole function and single operators are estimated first; they bound what others cost at least. Then
    others are estimated when the cheapest cover under bounds holds them, until the cheapest cover is known.

    Attributes:
        name: Of the function in its module.
        function: The function.
        specs: Who may run parts of it.
        estimator: Tells costs.
        boundaries: What borders cost.
        options: How the search is held.
        report: Told what is being done, in words.
        clock: Tells seconds.
    """

    name: str
    function: Function
    specs: Sequence[PartitionSpec]
    estimator: CostEstimator
    boundaries: BoundaryCosts = NO_BOUNDARIES
    options: CollageOptions = DEFAULT_OPTIONS
    report: Callable[[str], object] = _unheard
    clock: Callable[[], float] = time.perf_counter
    _estimates: dict[CandidatePartition, Estimate] = field(default_factory=dict)

    def run(self) -> FunctionCover:
        """Find the cheapest covers.

        Raises:
            UnsupportedModelError: Nobody runs some expression, or the candidates do not fit together.
        """
        start = self.clock()
        graph = DataflowGraph.of(self.function)
        collected = collect_candidates(graph, self.specs, self.options.max_candidates)
        candidates = collected.candidates
        collected_at = self.clock()
        shares = work_shares(graph)
        self._estimate_first(candidates, shares)
        cover = self._problem(graph, candidates, shares)
        found = lazy_search(cover.problem, self._measure(cover), options=self.options.search)
        final = self._final(cover)
        result = search(final, self._wanted())
        if isinstance(result, Infeasible):
            raise self._impossible(graph, cover, result)
        lower = found.result.lower_bound if isinstance(found.result, SearchResult) else 0.0
        covers = tuple(
            CoverRecord(cover.partitions(each, self.name), each.cost, self._uncertainty(cover, each.pieces))
            for each in result.covers
        )
        return FunctionCover(
            name=self.name,
            operators=sum(must_be_lowered(node.expr) for node in graph),
            covers=covers,
            lower_bound=lower,
            is_exact=result.is_exact and isinstance(found.result, SearchResult) and found.result.is_exact,
            candidates=tuple(candidates),
            estimates=dict(self._estimates),
            dropped=collected.dropped,
            collect_seconds=collected_at - start,
            seconds=self.clock() - start,
        )

    def _estimate_first(self, candidates: Sequence[CandidatePartition], shares: Mapping[int, float]) -> None:
        """The whole function, then single operators, those first that are likely to take long."""
        last = [each for each in candidates if each.spec.name == self.options.last_resort]
        others = [each for each in candidates if each.spec.name not in {HOST, self.options.last_resort}]
        self._estimate(_largest(others))
        singles = [each for each in others if _calls(each) == 1]
        singles.sort(key=lambda each: -max(shares.get(index, 0.0) for index in each.sub_graph.inside))
        begun = self.estimator.seconds_left()
        for first in range(0, len(singles), _BATCH):
            if self.estimator.seconds_left() < (1 - self.options.single_share) * begun:
                break
            self._estimate(singles[first : first + _BATCH])
        able = {
            index
            for each in others
            if each not in self._estimates or self._estimates[each].cost.kind is not CostKind.INVALID
            for index in each.sub_graph.inside
        }
        self._estimate([each for each in last if not all(index in able for index in _work(each))])
        for each in last:
            if each not in self._estimates:
                message = "not tried: others run it"
                self._estimates[each] = Estimate(Cost.INVALID, math.inf, math.inf, message=message)

    def _estimate(self, candidates: Iterable[CandidatePartition]) -> list[Estimate]:
        wanted = [each for each in candidates if each.spec.name != HOST]
        if wanted:
            self.report(f"{len(wanted)} candidates of {self.name}")
        found = self.estimator.estimate(wanted)
        self._estimates.update(
            (each, estimate)
            for each, estimate in zip(wanted, found, strict=True)
            if estimate.cost.kind is not CostKind.UNKNOWN
        )
        return list(found)

    def _problem(
        self, graph: DataflowGraph, candidates: Sequence[CandidatePartition], shares: Mapping[int, float]
    ) -> GraphCover:
        known = [
            each.with_cost(self._estimates[each].cost) if each in self._estimates else each
            for each in candidates
        ]
        values = {
            each: estimate.cost.seconds
            for each, estimate in self._estimates.items()
            if estimate.cost.kind is CostKind.VALUE
        }
        bounds = lower_bounds(known, values, shares)
        return GraphCover.of(graph, known, self.boundaries, self.options.conflicts, bounds)

    def _measure(self, cover: GraphCover) -> Callable[[Sequence[int]], Mapping[int, float | None]]:
        def measure(pieces: Sequence[int]) -> dict[int, float | None]:
            candidates = [cover.candidates[piece] for piece in pieces]
            estimates = self._estimate(candidates)
            return {
                piece: estimate.cost.seconds if estimate.cost.kind is CostKind.VALUE else None
                for piece, estimate in zip(pieces, estimates, strict=True)
                if estimate.cost.kind is not CostKind.UNKNOWN
            }

        return measure

    def _final(self, cover: GraphCover) -> CoverProblem:
        """The problem with all that has been learnt; what is unknown cannot be chosen."""
        costs: dict[int, float] = {}
        groups: dict[int, dict[str, MeasuredSeconds]] = {}
        for piece, candidate in enumerate(cover.candidates):
            estimate = self._estimates.get(candidate)
            if estimate is None:
                costs[piece] = 0.0 if candidate.cost == Cost.ZERO else INVALID
            elif estimate.cost.kind is not CostKind.VALUE:
                costs[piece] = INVALID
            else:
                costs[piece] = estimate.cost.seconds
                group = groups.setdefault(candidate.sub_graph.inside.bits, {})
                group[candidate.spec.name] = MeasuredSeconds(
                    estimate.cost.seconds, estimate.low, estimate.high
                )
        if self.options.shrink:
            positive = {bits: group for bits, group in groups.items() if _is_positive(group)}
            better = dict(zip(positive, shrunk(list(positive.values())), strict=True))
            for piece, candidate in enumerate(cover.candidates):
                seconds = better.get(candidate.sub_graph.inside.bits, {}).get(candidate.spec.name)
                if seconds is not None and math.isfinite(costs[piece]):
                    costs[piece] = seconds
        return cover.problem.with_costs(costs)

    def _wanted(self) -> SearchOptions:
        options = self.options.search
        return SearchOptions(
            self.options.covers, options.budget, options.width, options.growth, options.sweeps
        )

    def _uncertainty(self, cover: GraphCover, pieces: Sequence[int]) -> tuple[float, float]:
        """The sums of the lower and of the upper ends of the intervals of a cover's candidates."""
        found = [self._estimates[cover.candidates[piece]] for piece in pieces if self._is_known(cover, piece)]
        return sum(each.low for each in found), sum(each.high for each in found)

    def _is_known(self, cover: GraphCover, piece: int) -> bool:
        return cover.candidates[piece] in self._estimates

    def _impossible(
        self, graph: DataflowGraph, cover: GraphCover, result: Infeasible
    ) -> UnsupportedModelError:
        """Which expressions nobody runs, and what became of those who tried."""
        nodes = [*result.uncovered, *result.only_invalid, *result.cut_off]
        lines = []
        for node in nodes[:3]:
            index = cover.nodes[node]
            tried = [
                f"{each.spec.name}: {estimate.message or estimate.error.value}"
                for each, estimate in self._estimates.items()
                if index in each.sub_graph.inside
            ]
            label = cover.candidates[0].sub_graph.of(graph, [index]).label or str(index)
            lines.append(f"{label} ({'; '.join(dict.fromkeys(tried)) or 'no candidate'})")
        what = "; ".join(lines) or str(result)
        return UnsupportedModelError(
            f"no toolchain runs all of function {self.name!r}: {what}",
            help="add a toolchain that can, or give the search more time",
        )


def _largest(candidates: Sequence[CandidatePartition]) -> list[CandidatePartition]:
    """The largest candidate of each spec, if it is the largest of all."""
    most = max((len(_work(each)) for each in candidates), default=0)
    return [each for each in candidates if len(_work(each)) == most]


def _calls(candidate: CandidatePartition) -> int:
    return sum(map(must_be_lowered, candidate.sub_graph.exprs))


def _work(candidate: CandidatePartition) -> list[int]:
    graph = candidate.sub_graph.graph
    return [index for index in candidate.sub_graph.inside if index not in graph.everywhere]


def _is_positive(group: Mapping[str, MeasuredSeconds]) -> bool:
    return all(each.seconds > 0 for each in group.values())
