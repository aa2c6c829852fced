"""What was tried on each region of a function, and what became of it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from intarsia.collage.candidates.candidate_partition import CandidatePartition
from intarsia.collage.candidates.cost import CostKind
from intarsia.collage.costs.cost_estimator import Estimate
from intarsia.collage.gather_specs import HOST
from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.collage.graph.node_kind import node_label
from intarsia.collage.placement.placement import Partition, stable_nodes
from intarsia.collage.sub_graph import SubGraph
from intarsia.driver.explain.comparison import Comparison
from intarsia.driver.explain.explained_function import (
    Fate,
    FunctionRecord,
    NodeRecord,
    Region,
    SearchRecord,
    Tried,
    short_label,
)
from intarsia.driver.records import STATUS_OF
from intarsia.ir import Var
from intarsia.measure.measure_result import MeasureError
from intarsia.support.number_ranges import ranges_text

MOST: Final = 2_000
"""Candidates of a function that are listed; besides, for each node and spec the one that came closest."""

LEAST: Final = 20
"""Candidates of a region that are listed in any case."""

_LONGEST: Final = 300
"""Characters of a message that are kept."""

_ORDER: Final = (
    Fate.LOST,
    *(fate for fate in Fate if fate not in {Fate.LOST, Fate.NOT_TRIED}),
    Fate.NOT_TRIED,
)
"""In which candidates are listed."""


@dataclass(frozen=True, slots=True)
class ChosenPartition:
    """A partition that was chosen.

    Attributes:
        partition: Which.
        measured: Seconds that it takes in the executable, if they were taken.
    """

    partition: Partition
    measured: float | None = None


def explain_function(
    name: str, graph: DataflowGraph, chosen: Sequence[ChosenPartition], comparison: Comparison | None
) -> FunctionRecord:
    """All that is to be told of a function.

    Linear in its nodes and in the nodes of all candidates; each of `Comparison.at_most` is a search besides.

    Args:
        name: Of the function.
        graph: Its graph.
        chosen: Its partitions.
        comparison: Of what was chosen with other candidates; None if there are none.
    """
    search = None if comparison is None else _search_record(comparison)
    regions = tuple(_region(each, comparison, len(chosen)) for each in (*chosen, *_left(name, graph, chosen)))
    return FunctionRecord(name, node_records(graph), regions, search)


def node_records(graph: DataflowGraph) -> tuple[NodeRecord, ...]:
    """The expressions of a function that people know by an operator."""
    records = []
    for number, index in enumerate(stable_nodes(graph)):
        expr = graph[index].expr
        label = node_label(expr)
        if label:
            records.append(NodeRecord(number, label, "" if expr.span is None else expr.span.node))
    return tuple(records)


def _left(name: str, graph: DataflowGraph, chosen: Sequence[ChosenPartition]) -> Iterator[ChosenPartition]:
    """What is in no partition, for the host."""
    owned = {node for each in chosen for node in each.partition.nodes}
    left = {
        number: index
        for number, index in enumerate(stable_nodes(graph))
        if number not in owned and not isinstance(graph[index].expr, Var)
    }
    if left:
        label = SubGraph.of(graph, left.values()).label
        yield ChosenPartition(Partition(name, "", tuple(left), label))


def _search_record(comparison: Comparison) -> SearchRecord:
    cover = comparison.cover
    fates = Counter(_fate(comparison, each)[0] for each in comparison.tried)
    estimates = cover.estimates.values()
    return SearchRecord(
        specs=tuple(dict.fromkeys(each.spec.name for each in comparison.tried)),
        candidates=len(comparison.tried),
        measured=cover.measured,
        known=sum(each.was_known and _was_tried(each) for each in estimates),
        failed=cover.failed,
        not_tried=fates[Fate.NOT_TRIED],
        dropped=dict(Counter(each.reason.value for each in cover.dropped)),
        seconds=cover.seconds,
        predicted=cover.best.seconds,
        lower_bound=cover.lower_bound,
        gap=cover.gap,
        is_exact=cover.is_exact,
        chosen=comparison.chosen_seconds,
        compared=comparison.basis,
    )


def _region(chosen: ChosenPartition, comparison: Comparison | None, regions: int) -> Region:
    partition = chosen.partition
    candidate = None if comparison is None else comparison.own.get(partition)
    estimate = None if comparison is None or candidate is None else comparison.cover.estimates.get(candidate)
    low, high = _interval(estimate)
    tried = () if comparison is None else _tried(comparison, partition, candidate)
    listed = () if comparison is None else _listed(comparison, tried, max(LEAST, MOST // max(1, regions)))
    return Region(
        toolchain=partition.toolchain if partition.target else HOST,
        target=partition.target,
        nodes=ranges_text(partition.nodes),
        label=short_label(partition.label),
        predicted=_seconds(estimate),
        low=low,
        high=high,
        measured=chosen.measured,
        rival=None if comparison is None or candidate is None else comparison.rival(partition),
        tried=() if comparison is None else tuple(_record(comparison, each, candidate) for each in listed),
        left_out=len(tried) - len(listed),
    )


def _tried(
    comparison: Comparison, partition: Partition, chosen: CandidatePartition | None
) -> tuple[CandidatePartition, ...]:
    """The candidates whose first node is in a partition: the chosen one, then by fate and by loss."""
    nodes = frozenset(partition.nodes)
    own = [each for each in comparison.tried if comparison.numbers(each.sub_graph)[0] in nodes]
    keys = {
        each: (
            each != chosen,
            _ORDER.index(_fate(comparison, each)[0]),
            comparison.at_least.get(each, math.inf),
            each.sort_key,
        )
        for each in own
    }
    return tuple(sorted(own, key=lambda each: keys[each]))


def _listed(
    comparison: Comparison, ranked: Sequence[CandidatePartition], most: int
) -> tuple[CandidatePartition, ...]:
    """The first ones, and for each node and spec the first that holds it."""
    seen: set[tuple[int, str]] = set()
    kept = []
    for place, each in enumerate(ranked):
        here = {(number, each.spec.name) for number in comparison.numbers(each.sub_graph)}
        if place < most or not here <= seen:
            kept.append(each)
        seen |= here
    return tuple(kept)


def _record(
    comparison: Comparison, candidate: CandidatePartition, chosen: CandidatePartition | None
) -> Tried:
    estimate = comparison.cover.estimates.get(candidate)
    fate, message = (Fate.CHOSEN, "") if candidate == chosen else _fate(comparison, candidate)
    low, high = _interval(estimate)
    return Tried(
        spec=candidate.spec.name,
        target=str(candidate.spec.target),
        nodes=ranges_text(comparison.numbers(candidate.sub_graph)),
        label=short_label(candidate.sub_graph.label),
        rule=candidate.rule_name,
        fate=fate,
        message=message if len(message) <= _LONGEST else f"{message[:_LONGEST]}...",
        seconds=_seconds(estimate),
        low=low,
        high=high,
        loss_low=comparison.at_least.get(candidate) if fate is Fate.LOST else None,
        loss_high=comparison.at_most(candidate) if fate is Fate.LOST else None,
    )


def _fate(comparison: Comparison, candidate: CandidatePartition) -> tuple[Fate, str]:
    """What became of a candidate that was not chosen, and why."""
    estimate = comparison.cover.estimates.get(candidate)
    if estimate is None or estimate.cost.kind is CostKind.UNKNOWN:
        exact = "no cover with it can be cheaper, by what its operators cost at least"
        return Fate.NOT_TRIED, exact if comparison.cover.is_exact else "the search ended before its turn"
    if estimate.cost.kind is CostKind.VALUE:
        return Fate.LOST, ""
    if not _was_tried(estimate):
        return Fate.NOT_TRIED, estimate.message.removeprefix("not tried: ")
    return Fate(STATUS_OF[estimate.error].value), estimate.message


def _was_tried(estimate: Estimate) -> bool:
    return estimate.cost.kind is CostKind.VALUE or estimate.error is not MeasureError.OK


def _seconds(estimate: Estimate | None) -> float | None:
    return estimate.cost.seconds if estimate is not None and estimate.cost.kind is CostKind.VALUE else None


def _interval(estimate: Estimate | None) -> tuple[float | None, float | None]:
    if estimate is None or estimate.cost.kind is not CostKind.VALUE or not math.isfinite(estimate.high):
        return None, None
    return estimate.low, estimate.high
