"""Phase 2: the candidates of all specs, without those that can be of no use (seed collage_rfc)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from intarsia.collage.candidates.candidate_partition import CandidatePartition, PartitionSpec
from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.collage.planned_devices import PlannedDevices
from intarsia.collage.rules.must_be_lowered import must_be_lowered
from intarsia.collage.sub_graph import SubGraph


class DropReason(Enum):
    """Why a candidate is not looked at."""

    INVALID = "it can be no function"
    DEVICE = "it conflicts with the planned devices"
    SAME_NODES = "another candidate of the spec has the same nodes"
    TOO_MANY = "the spec has too many candidates"


@dataclass(frozen=True, slots=True)
class DroppedCandidate:
    """A candidate that is not looked at.

    Attributes:
        candidate: The dropped candidate.
        reason: Why not.
        detail: Details for people: a phrase that goes on after "it"; or "".
    """

    candidate: CandidatePartition
    reason: DropReason
    detail: str = ""

    def __str__(self) -> str:
        detail = f" ({self.detail})" if self.detail else ""
        return f"{self.candidate.name} {self.candidate.sub_graph.inside}: {self.reason.value}{detail}"


@dataclass(frozen=True, slots=True)
class CollectedCandidates:
    """What the search chooses from.

    Attributes:
        graph: The graph.
        candidates: Candidates by first node, then by the others; for the same nodes in order of the specs.
        dropped: Candidates that the rules proposed besides.
    """

    graph: DataflowGraph
    candidates: tuple[CandidatePartition, ...]
    dropped: tuple[DroppedCandidate, ...]


def collect_candidates(
    graph: DataflowGraph, specs: Sequence[PartitionSpec], max_per_spec: int = 0
) -> CollectedCandidates:
    """Ask every spec for its candidates, and drop what is of no use.

    * A candidate that is to be a function must be one (`SubGraph.structure_complaint`).
    * Planned virtual devices are kept to: see `PlannedDevices`.
    * Of candidates of one spec with the same nodes the first is kept, as the spec's rule prefers it.
    * With `max_per_spec`, candidates of one call stay in any case; others are thinned out evenly over all
      lengths and places.

    Costs what the rules cost, and one step per node of each candidate.

    Args:
        graph: The graph of a function.
        specs: Specs, from `gather_partition_specs`.
        max_per_spec: The largest number for each spec; 0 for any.
    """
    devices = PlannedDevices(graph)
    kept: list[CandidatePartition] = []
    dropped: list[DroppedCandidate] = []
    for spec in specs:
        kept_by_nodes: dict[int, CandidatePartition] = {}
        for candidate in spec.candidates(graph):
            refusal = _refusal(candidate, devices, kept_by_nodes)
            if refusal is None:
                kept_by_nodes[candidate.sub_graph.inside.bits] = candidate
            else:
                dropped.append(refusal)
        thinned = thinned_out(list(kept_by_nodes.values()), max_per_spec)
        kept += thinned
        left = set(kept_by_nodes) - {candidate.sub_graph.inside.bits for candidate in thinned}
        dropped += (
            DroppedCandidate(
                candidate, DropReason.TOO_MANY, f"{len(kept_by_nodes)}, allowed are {max_per_spec}"
            )
            for bits, candidate in kept_by_nodes.items()
            if bits in left
        )
    kept.sort(key=lambda candidate: candidate.sub_graph.inside)
    return CollectedCandidates(graph, tuple(kept), tuple(dropped))


def _refusal(
    candidate: CandidatePartition, devices: PlannedDevices, kept_by_nodes: dict[int, CandidatePartition]
) -> DroppedCandidate | None:
    sub_graph = candidate.sub_graph
    if sub_graph.nested:
        problem = _body(sub_graph).structure_complaint
        if problem is not None:
            return DroppedCandidate(candidate, DropReason.INVALID, problem)
        problem = devices.complaint(sub_graph, candidate.spec.target)
        if problem is not None:
            return DroppedCandidate(candidate, DropReason.DEVICE, problem)
    same = kept_by_nodes.get(sub_graph.inside.bits)
    return None if same is None else DroppedCandidate(candidate, DropReason.SAME_NODES, same.name)


def _body(sub_graph: SubGraph) -> SubGraph:
    """A wrapped candidate without the wrapping: most rules have checked already whether it is valid."""
    outer, *others = sub_graph.nested
    is_whole = not others and outer.sub_graph.inside == sub_graph.inside
    return outer.sub_graph if is_whole else sub_graph


def thinned_out(candidates: Sequence[CandidatePartition], most: int) -> list[CandidatePartition]:
    """At most so many of some candidates, in their order; 0 for any number.

    Those of one call, and those that are no function, always stay, be there more of them or not. The others
    are sorted by size, in classes of 2..3 calls, 4..7 calls ...; the large classes give first, and in each
    class those that stay are spread over the program.
    """
    if not most or len(candidates) <= most:
        return list(candidates)
    classes: dict[int, list[CandidatePartition]] = {}
    for candidate in candidates:
        size = _calls(candidate.sub_graph) if candidate.sub_graph.nested else 0
        classes.setdefault(size.bit_length() if size > 1 else 0, []).append(candidate)
    stay = set(classes.pop(0, ()))
    left = most - len(stay)
    for rank, group in enumerate(sorted(classes.values(), key=len)):
        share = min(len(group), max(0, left) // (len(classes) - rank))
        group.sort(key=lambda candidate: candidate.sub_graph.inside)
        stay.update(group[position * len(group) // share] for position in range(share))
        left -= share
    return [candidate for candidate in candidates if candidate in stay]


def _calls(sub_graph: SubGraph) -> int:
    return sum(map(must_be_lowered, sub_graph.exprs))
