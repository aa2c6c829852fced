"""Explanation of a function: the candidates on each of its regions, and their outcomes."""

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
from intarsia.ir import Var
from intarsia.measure.measure_result import MeasureError
from intarsia.report.explained_function import (
    ExplainedRegion,
    Fate,
    FunctionRecord,
    NodeRecord,
    SearchRecord,
    Tried,
    short_label,
)
from intarsia.support.number_ranges import ranges_text
from intarsia.tune.contest.candidate_record import STATUS_OF

MOST: Final = 2_000
"""Maximum number of listed candidates of a function, beside the closest one of each node and spec."""

LEAST: Final = 20
"""Minimum number of listed candidates of a region."""

_LONGEST: Final = 300
"""Maximum length of a message in characters."""

_ORDER: Final = (
    Fate.LOST,
    *(fate for fate in Fate if fate not in {Fate.LOST, Fate.NOT_TRIED}),
    Fate.NOT_TRIED,
)
"""Order in which candidates are listed, by outcome."""


@dataclass(frozen=True, slots=True)
class ChosenPartition:
    """A chosen partition.

    Attributes:
        partition: Partition.
        measured: Latency within the executable in seconds, if measured.
    """

    partition: Partition
    measured: float | None = None


def explain_function(
    name: str, graph: DataflowGraph, chosen: Sequence[ChosenPartition], comparison: Comparison | None
) -> FunctionRecord:
    """Explain the partitions of a function.

    Takes linear time in its nodes and those of all candidates, plus a search per `Comparison.at_most`.

    Args:
        name: Name of the function.
        graph: Dataflow graph of the function.
        chosen: Chosen partitions of the function.
        comparison: Comparison of the chosen partitions with other candidates; None without a search.
    """
    search = None if comparison is None else _search_record(comparison)
    regions = tuple(
        _region(partition, comparison, len(chosen))
        for partition in (*chosen, *_host_partition(name, graph, chosen))
    )
    return FunctionRecord(name, node_records(graph), regions, search)


def node_records(graph: DataflowGraph) -> tuple[NodeRecord, ...]:
    """Return the expressions of a function that have an operator name."""
    records = []
    for number, index in enumerate(stable_nodes(graph)):
        expr = graph[index].expr
        label = node_label(expr)
        if label:
            records.append(NodeRecord(number, label, "" if expr.span is None else expr.span.node))
    return tuple(records)


def _host_partition(
    name: str, graph: DataflowGraph, chosen: Sequence[ChosenPartition]
) -> Iterator[ChosenPartition]:
    """Yield the nodes outside of all partitions as one for the host, if there are any."""
    owned = {node for part in chosen for node in part.partition.nodes}
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
    fates = Counter(_fate(comparison, candidate)[0] for candidate in comparison.tried)
    estimates = cover.estimates.values()
    return SearchRecord(
        specs=tuple(dict.fromkeys(candidate.spec.name for candidate in comparison.tried)),
        candidates=len(comparison.tried),
        measured=cover.measured,
        known=sum(estimate.was_known and _was_tried(estimate) for estimate in estimates),
        failed=cover.failed,
        not_tried=fates[Fate.NOT_TRIED],
        dropped=dict(Counter(proposal.reason.value for proposal in cover.dropped)),
        seconds=cover.seconds,
        predicted=cover.best.seconds,
        lower_bound=cover.lower_bound,
        gap=cover.gap,
        is_exact=cover.is_exact,
        chosen=comparison.chosen_seconds,
        compared=comparison.basis,
    )


def _region(chosen: ChosenPartition, comparison: Comparison | None, regions: int) -> ExplainedRegion:
    partition = chosen.partition
    candidate = None if comparison is None else comparison.own.get(partition)
    estimate = None if comparison is None or candidate is None else comparison.cover.estimates.get(candidate)
    low, high = _interval(estimate)
    tried = () if comparison is None else _tried(comparison, partition, candidate)
    listed = () if comparison is None else _listed(comparison, tried, max(LEAST, MOST // max(1, regions)))
    return ExplainedRegion(
        toolchain=partition.toolchain if partition.target else HOST,
        target=partition.target,
        nodes=ranges_text(partition.nodes),
        label=short_label(partition.label),
        predicted=_seconds(estimate),
        low=low,
        high=high,
        measured=chosen.measured,
        rival=None if comparison is None or candidate is None else comparison.rival(partition),
        tried=() if comparison is None else tuple(_record(comparison, other, candidate) for other in listed),
        left_out=len(tried) - len(listed),
    )


def _tried(
    comparison: Comparison, partition: Partition, chosen: CandidatePartition | None
) -> tuple[CandidatePartition, ...]:
    """Return the candidates with their first node in a partition: the chosen one, then by fate and loss."""
    nodes = frozenset(partition.nodes)
    candidates = [
        candidate for candidate in comparison.tried if comparison.numbers(candidate.sub_graph)[0] in nodes
    ]
    keys = {
        candidate: (
            candidate != chosen,
            _ORDER.index(_fate(comparison, candidate)[0]),
            comparison.at_least.get(candidate, math.inf),
            candidate.sort_key,
        )
        for candidate in candidates
    }
    return tuple(sorted(candidates, key=lambda candidate: keys[candidate]))


def _listed(
    comparison: Comparison, ranked: Sequence[CandidatePartition], most: int
) -> tuple[CandidatePartition, ...]:
    """Return the first candidates, and the first candidate of each node and spec."""
    seen: set[tuple[int, str]] = set()
    kept = []
    for rank, candidate in enumerate(ranked):
        covered = {(number, candidate.spec.name) for number in comparison.numbers(candidate.sub_graph)}
        if rank < most or not covered <= seen:
            kept.append(candidate)
        seen |= covered
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
    """Return the outcome of a candidate that was not chosen, and its reason."""
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
