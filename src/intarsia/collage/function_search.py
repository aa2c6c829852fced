"""Phases 2 and 3 for one function: candidates, their costs, and the cheapest covers (seed collage_rfc)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from intarsia.collage.candidates.candidate_partition import CandidatePartition, PartitionSpec
from intarsia.collage.candidates.cost import Cost, CostKind
from intarsia.collage.costs.boundary_costs import NO_BOUNDARIES, BoundaryCosts
from intarsia.collage.costs.cost_estimator import CostEstimator, Estimate
from intarsia.collage.costs.final_costs import final_costs
from intarsia.collage.costs.lower_bounds import lower_bounds
from intarsia.collage.costs.mix_gain import mix_gain
from intarsia.collage.costs.work_shares import work_shares
from intarsia.collage.cover_of_graph import GraphCover
from intarsia.collage.function_cover import CoverRecord, FunctionCover
from intarsia.collage.gather_specs import HOST
from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.collage.no_cover import no_cover
from intarsia.collage.prune import collect_candidates
from intarsia.collage.rules.must_be_lowered import must_be_lowered
from intarsia.collage.search import (
    INVALID,
    Cover,
    CoverProblem,
    Infeasible,
    SearchOptions,
    SearchResult,
    lazy_search,
    search,
)
from intarsia.ir import Function
from intarsia.measure.measure_result import MeasureError
from intarsia.support.callbacks import silent
from intarsia.target.reference import REFERENCE


@dataclass(frozen=True, slots=True)
class CollageOptions:
    """How a search is held.

    Attributes:
        covers: Number of the cheapest covers that are wanted.
        max_candidates: For each spec; 0 for any number.
        search: Options of the search for covers.
        last_resort: Name of the spec that is tried only where no other can run the nodes: the reference,
            which may take minutes for what others do in milliseconds. None: there is none.
        single_share: Share of the time that single operators may take, before larger candidates are tried.
        settle_rounds: Largest number of rounds that remeasure the candidates in which the best covers differ.
        unverified: Whether candidates that were not measured, and so not checked, in time may be chosen
            where the others make no cover: if what comes out is verified later.
        shrink: Whether costs are shrunk by their uncertainty.
        conflicts: Pairs of toolchains, each in order of the alphabet, that must not occur together.
        worth: Factor that a mix must be able to gain over the best toolchain alone, judged by single
            operators; with less in sight, or without the time to judge it, the search ends with what is
            measured. 1: it goes on in any case.
        judge_seconds: Time in which single operators must show what a mix can gain, if mixes are judged.
    """

    covers: int = 4
    max_candidates: int = 3_000
    search: SearchOptions = SearchOptions()  # noqa: RUF009 - frozen
    last_resort: str | None = REFERENCE
    single_share: float = 0.4
    settle_rounds: int = 3
    unverified: bool = True
    shrink: bool = True
    conflicts: frozenset[tuple[str, str]] = frozenset()
    worth: float = 1.0
    judge_seconds: float = math.inf


_JUDGED: Final = 0.6
"""Share of a function's work that must have been measured singly, before mixes are judged by it."""

_BATCH: Final = 16
"""Candidates that are estimated before the time is looked at."""

_GUESSED_CALL: Final = 1e-6
"""Seconds that are added to the bound of a candidate that was not measured for lack of time."""

DEFAULT_OPTIONS = CollageOptions()


@dataclass(eq=False)
class FunctionSearch:
    """The search for the cheapest covers of a function.

    The whole function and single operators are estimated first; they bound what others cost at least. Then
    others are estimated when the cheapest cover under bounds holds them, until the cheapest cover is known.
    The last resort is estimated where no other is able. If the time ends before any cover is known, those
    that were not measured are taken by their bounds, if that is allowed.

    Attributes:
        name: Name of the function in its module.
        function: The function.
        specs: Specs of the toolchains that may run parts of it.
        estimator: Estimator of costs.
        boundaries: Costs of boundaries between toolchains.
        options: Options of the search.
        report: Called with a sentence about each step of the work.
        clock: Clock, in seconds.
    """

    name: str
    function: Function
    specs: Sequence[PartitionSpec]
    estimator: CostEstimator
    boundaries: BoundaryCosts = NO_BOUNDARIES
    options: CollageOptions = DEFAULT_OPTIONS
    report: Callable[[str], object] = silent
    clock: Callable[[], float] = time.perf_counter
    _estimates: dict[CandidatePartition, Estimate] = field(default_factory=dict)
    _note: str = ""
    _held_back: frozenset[CandidatePartition] = frozenset()
    """Those of the last resort that are not tried, because others seem to be able."""

    def run(self) -> FunctionCover:
        """Find the cheapest covers.

        Raises:
            UnsupportedModelError: No toolchain runs some expression, or the candidates do not fit together.
        """
        start = self.clock()
        graph = DataflowGraph.of(self.function)
        collected = collect_candidates(graph, self.specs, self.options.max_candidates)
        collected_at = self.clock()
        search = self._search_covers(graph, collected.candidates)
        covers = tuple(self._record(search, cover) for cover in search.result.covers)
        for cover in self._held_back:
            message = "not tried: others run it"
            self._estimates[cover] = Estimate(
                Cost.INVALID, math.inf, math.inf, message=message, was_known=True
            )
        return FunctionCover(
            name=self.name,
            operators=sum(must_be_lowered(node.expr) for node in graph),
            covers=covers,
            lower_bound=covers[0].seconds if search.is_exact else min(search.lower_bound, covers[0].seconds),
            is_exact=search.is_exact,
            candidates=collected.candidates,
            estimates=dict(self._estimates),
            dropped=collected.dropped,
            collect_seconds=collected_at - start,
            seconds=self.clock() - start,
            note=self._note,
        )

    def _search_covers(
        self, graph: DataflowGraph, candidates: Sequence[CandidatePartition]
    ) -> _SearchedCovers:
        """Search, with the last resort where the others turn out to be unable."""
        shares = work_shares(graph)
        self._estimate_first(candidates, shares)
        if self._note:
            cover = self._problem(graph, candidates, shares, NO_BOUNDARIES)
            settled = self._search_known(cover)
            if isinstance(settled, SearchResult):
                return _SearchedCovers(cover, settled, 0.0, is_exact=False)
        while True:
            cover = self._problem(graph, candidates, shares)
            lazy = lazy_search(cover.problem, self._measure(cover), options=self.options.search)
            result = self._remeasure_best(cover)
            if isinstance(result, SearchResult):
                proof = lazy.result if isinstance(lazy.result, SearchResult) else None
                is_exact = result.is_exact and proof is not None and proof.is_exact
                return _SearchedCovers(cover, result, proof.lower_bound if proof else 0.0, is_exact)
            if self.estimator.seconds_left() <= 0 or not self._use_last_resort(cover, result):
                break
        untried = frozenset(each for each in candidates if each not in self._estimates)
        for others in (self._held_back, frozenset()) if self.options.unverified else (untried,):
            guess = search(self._guessed(cover, others), self._wanted())
            if isinstance(guess, SearchResult):
                self._held_back &= others
                return _SearchedCovers(cover, guess, 0.0, is_exact=False)
        raise no_cover(self.name, self.specs, cover, self._estimates, result)

    def _estimate_first(self, candidates: Sequence[CandidatePartition], shares: Mapping[int, float]) -> None:
        """The whole function, then single operators, those first that are likely to take long."""
        last = [candidate for candidate in candidates if candidate.spec.name == self.options.last_resort]
        others = [
            candidate
            for candidate in candidates
            if candidate.spec.name not in {HOST, self.options.last_resort}
        ]
        self._estimate(_largest(others))
        singles = [
            candidate for candidate in _single_operators(others, shares) if candidate not in self._estimates
        ]
        begun = self.estimator.seconds_left()
        least = (1 - self.options.single_share) * begun
        for first in range(0, len(singles), _BATCH):
            left = self.estimator.seconds_left()
            left_to_judge = min(left - least, self.options.judge_seconds - (begun - left))
            if self._is_hopeless(shares, begun - left, max(0.0, left_to_judge)) or left < least:
                break
            self._estimate(singles[first : first + _BATCH])
        left = self.estimator.seconds_left()
        is_late = any(candidate not in self._estimates for candidate in singles)
        self._is_hopeless(shares, begun - left, 0.0 if is_late else math.inf)
        able = {
            index
            for candidate in others
            if candidate not in self._estimates
            or self._estimates[candidate].cost.kind is not CostKind.INVALID
            for index in candidate.sub_graph.inside
        }
        self._held_back = frozenset(
            candidate for candidate in last if all(index in able for index in _work_in(candidate))
        )
        self._estimate([candidate for candidate in last if candidate not in self._held_back])

    def _is_hopeless(self, shares: Mapping[int, float], used: float, left: float) -> bool:
        """Whether no mix is worth searching, judged by the operators that were measured singly.

        Nor is it if too few can be measured in time: a search among guesses takes as long, and finds nothing.

        Args:
            shares: Share of each node in the time of the program.
            used: Seconds that measuring single operators has taken so far.
            left: Seconds that are left for them.
        """
        if self._note or self.options.worth <= 1:
            return bool(self._note)
        gain = mix_gain(self._known_seconds(), shares)
        if gain.share >= _JUDGED:
            if gain.factor < self.options.worth:
                self._note = (
                    f"no mix of toolchains can gain more than {100 * (gain.factor - 1):.1f} %, judged by "
                    f"single operators with {100 * gain.share:.0f} % of the work"
                )
        elif gain.share > 0 and math.isfinite(gain.factor):
            # The operators with most work are measured first, so that the others take at least as long.
            needed = used * (_JUDGED - gain.share) / gain.share
            if needed > left:
                self._note = (
                    f"single operators with {100 * gain.share:.0f} % of the work were measured in "
                    f"{used:.1f} s, and it takes {100 * _JUDGED:.0f} % to judge mixes: --until-proven goes on"
                )
        return bool(self._note)

    def _known_seconds(self) -> dict[CandidatePartition, float]:
        return {
            candidate: estimate.cost.seconds
            for candidate, estimate in self._estimates.items()
            if estimate.cost.kind is CostKind.VALUE
        }

    def _use_last_resort(self, cover: GraphCover, result: Infeasible) -> bool:
        """Estimate the last resort where it was held back; whether there is any."""
        missing = result.uncovered + result.only_invalid or result.cut_off
        nodes = {cover.nodes[node] for node in missing}
        near = {each for each in self._held_back if not nodes.isdisjoint(each.sub_graph.inside)}
        wanted = [each for each in cover.candidates if each in (near or self._held_back)]
        self._held_back -= frozenset(wanted)
        self._estimate(wanted)
        return bool(wanted)

    def _estimate(self, candidates: Iterable[CandidatePartition]) -> list[Estimate]:
        wanted = [candidate for candidate in candidates if candidate.spec.name != HOST]
        if wanted:
            self.report(f"{len(wanted)} candidates of {self.name}")
        estimates = self.estimator.estimate(wanted)
        self._estimates.update(
            (candidate, estimate)
            for candidate, estimate in zip(wanted, estimates, strict=True)
            if estimate.cost.kind is not CostKind.UNKNOWN
        )
        return list(estimates)

    def _problem(
        self,
        graph: DataflowGraph,
        candidates: Sequence[CandidatePartition],
        shares: Mapping[int, float],
        boundaries: BoundaryCosts | None = None,
    ) -> GraphCover:
        costed = [candidate.with_cost(self._cost(candidate)) for candidate in candidates]
        bounds = lower_bounds(costed, self._known_seconds(), shares)
        boundaries = self.boundaries if boundaries is None else boundaries
        return GraphCover.of(graph, costed, boundaries, self.options.conflicts, bounds)

    def _cost(self, candidate: CandidatePartition) -> Cost:
        if candidate in self._held_back:
            return Cost.INVALID
        return self._estimates[candidate].cost if candidate in self._estimates else candidate.cost

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

    def _remeasure_best(self, cover: GraphCover) -> SearchResult | Infeasible:
        """The cheapest covers, after the candidates in which they differ have been measured again."""
        result = self._search_known(cover)
        for _ in range(self.options.settle_rounds):
            if isinstance(result, Infeasible) or self.estimator.seconds_left() <= 0:
                break
            common = frozenset(result.best.pieces).intersection(*(best.pieces for best in result.covers))
            pieces = {piece for best in result.covers for piece in best.pieces} - common
            differing = [cover.candidates[piece] for piece in sorted(pieces)]
            wanted = [candidate for candidate in differing if candidate in self._estimates]
            estimates = [self._estimates[candidate] for candidate in wanted]
            remeasured = [
                replace(new, was_known=new.was_known and old.was_known)
                for new, old in zip(self.estimator.settle(wanted), estimates, strict=True)
            ]
            self._estimates.update(zip(wanted, remeasured, strict=True))
            if all(new.cost == old.cost for new, old in zip(remeasured, estimates, strict=True)):
                break
            result = self._search_known(cover)
        return result

    def _search_known(self, cover: GraphCover) -> SearchResult | Infeasible:
        """The cheapest covers by all that has been learnt; what is unknown cannot be chosen."""
        costs = final_costs(cover.candidates, self._estimates, shrink=self.options.shrink)
        unknown = {piece: INVALID for piece in range(len(cover.candidates)) if piece not in costs}
        return search(cover.problem.with_costs({**costs, **unknown}), self._wanted())

    def _guessed(self, cover: GraphCover, without: frozenset[CandidatePartition]) -> CoverProblem:
        """The problem in which what is unknown counts with its bound; few such partitions are best.

        So does what the last resort alone would run, and what cannot be measured by itself.
        """
        costs = final_costs(cover.candidates, self._estimates, shrink=self.options.shrink)
        for piece, candidate in enumerate(cover.candidates):
            estimate = self._estimates.get(candidate)
            is_hidden = estimate is not None and estimate.error is MeasureError.UNKNOWN
            if piece not in costs or (is_hidden and candidate.spec.name == self.options.last_resort):
                bound = cover.problem.pieces[piece].bound
                costs[piece] = INVALID if candidate in without else bound + _GUESSED_CALL
        return cover.problem.with_costs(costs)

    def _wanted(self) -> SearchOptions:
        return replace(self.options.search, covers=self.options.covers)

    def _record(self, search: _SearchedCovers, cover: Cover) -> CoverRecord:
        """A cover, with the sums of the lower and of the upper ends of its candidates' intervals."""
        chosen = [search.cover.candidates[piece] for piece in cover.pieces]
        asked = [self._estimates.get(each) for each in chosen if each.spec.name != HOST]
        costed = [each for each in asked if each is not None and each.cost.is_value]
        interval = sum(each.low for each in costed), sum(each.high for each in costed)
        partitions = search.cover.partitions(cover, self.name)
        return CoverRecord(partitions, cover.cost, interval, len(asked) - len(costed))


@dataclass(frozen=True, slots=True)
class _SearchedCovers:
    """The covers of a problem; the bound and whether they are the cheapest speak of the costs as measured."""

    cover: GraphCover
    result: SearchResult
    lower_bound: float
    is_exact: bool


def _largest(candidates: Sequence[CandidatePartition]) -> list[CandidatePartition]:
    """Those with the most nodes: one of each spec that can run all that any can."""
    most = max((len(_work_in(each)) for each in candidates), default=0)
    return [each for each in candidates if len(_work_in(each)) == most]


def _single_operators(
    candidates: Sequence[CandidatePartition], shares: Mapping[int, float]
) -> list[CandidatePartition]:
    """Those of one call, the calls with the largest share of the time first."""
    single_calls = [
        candidate for candidate in candidates if sum(map(must_be_lowered, candidate.sub_graph.exprs)) == 1
    ]
    return sorted(
        single_calls,
        key=lambda candidate: -max(shares.get(index, 0.0) for index in candidate.sub_graph.inside),
    )


def _work_in(candidate: CandidatePartition) -> list[int]:
    """The nodes of a candidate but for those that are everywhere."""
    graph = candidate.sub_graph.graph
    return [index for index in candidate.sub_graph.inside if index not in graph.everywhere]
