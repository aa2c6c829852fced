"""Costs of the candidates of a function in place of the chosen partitions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from intarsia.collage.candidates.candidate_partition import CandidatePartition
from intarsia.collage.conflicts import Conflicts
from intarsia.collage.costs.boundary_costs import BoundaryCosts
from intarsia.collage.costs.final_costs import final_costs
from intarsia.collage.cover_of_graph import GraphCover
from intarsia.collage.function_cover import FunctionCover
from intarsia.collage.gather_specs import HOST
from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.collage.placement.placement import Partition, stable_nodes
from intarsia.collage.rivals import Rivals
from intarsia.collage.search import INVALID
from intarsia.collage.sub_graph import SubGraph
from intarsia.report.explained_function import Compared, Rival, RivalPart, short_label
from intarsia.support.number_ranges import ranges_text

MOST_COVERS: Final = 100
"""Maximum number of candidates of a function that a cover is searched for; a large function has fewer."""

_COVERED: Final = 10_000
"""Total nodes of these covers, which bounds their time for large functions."""

_LEAST_COVERS: Final = 10
"""Minimum number of these covers, however large the function is."""


@dataclass(eq=False)
class Comparison:
    """Comparison of the chosen cover of a function, or of the cheapest predicted one, with others.

    Costs are those of the search: measured, and shrunk by their uncertainty.

    Attributes:
        graph: Dataflow graph of the function.
        cover: Result of the search for its partitions.
        chosen: Chosen partitions.
        boundaries: Boundary costs between toolchains.
        conflicts: Toolchains that must not occur together.
    """

    graph: DataflowGraph
    cover: FunctionCover
    chosen: Sequence[Partition]
    boundaries: BoundaryCosts
    conflicts: Conflicts = frozenset()
    _covers: int = field(default=0, init=False)

    @cached_property
    def number(self) -> Mapping[int, int]:
        """Stable numbers of the nodes of the graph that have one, by index."""
        return {index: number for number, index in enumerate(stable_nodes(self.graph))}

    @cached_property
    def tried(self) -> tuple[CandidatePartition, ...]:
        """Candidates of toolchains, without the host's."""
        return tuple(candidate for candidate in self.cover.candidates if candidate.spec.name != HOST)

    @cached_property
    def own(self) -> Mapping[Partition, CandidatePartition]:
        """Candidates of the chosen partitions; a partition may have none."""
        return self._candidates_of(self.chosen)

    @property
    def basis(self) -> Compared:
        """Basis of the comparison."""
        return self._basis[0]

    @property
    def chosen_seconds(self) -> float | None:
        """Predicted seconds of the chosen cover, if all of it was measured."""
        basis, rivals = self._basis
        return rivals.cost if rivals is not None and basis is Compared.CHOSEN else None

    def numbers(self, sub_graph: SubGraph) -> tuple[int, ...]:
        """Return the stable numbers of a sub-graph."""
        return tuple(self.number[index] for index in sub_graph.inside if index in self.number)

    @cached_property
    def at_least(self) -> Mapping[CandidatePartition, float]:
        """Lower bounds of the loss of each candidate, in seconds."""
        rivals = self._basis[1]
        losses = {} if rivals is None else rivals.at_least()
        return {
            self._problem.candidates[piece]: loss for piece, loss in losses.items() if math.isfinite(loss)
        }

    def at_most(self, candidate: CandidatePartition) -> float | None:
        """Return an upper bound of a candidate's loss in seconds, for the first `MOST_COVERS` calls only."""
        rivals = self._basis[1]
        most = min(MOST_COVERS, max(_LEAST_COVERS, _COVERED // max(1, len(self.number))))
        if rivals is None or candidate not in self._piece or self._covers >= most:
            return None
        self._covers += 1
        return rivals.with_piece(self._piece[candidate])

    def rival(self, partition: Partition) -> Rival | None:
        """Return the runner-up on the nodes of a chosen partition."""
        basis, rivals = self._basis
        if rivals is None or basis is not Compared.CHOSEN:
            return None
        cover = rivals.without_piece(self._piece[self.own[partition]])
        if cover is None:
            return None
        pieces, loss = rivals.problem.pieces, cover.cost
        seconds = {self._problem.candidates[piece]: pieces[piece].floor for piece in cover.pieces}
        total = sum(seconds.values())
        parts = tuple(
            RivalPart(
                candidate.spec.name,
                ranges_text(self.numbers(candidate.sub_graph)),
                short_label(candidate.sub_graph.label),
                seconds[candidate],
            )
            for candidate in seconds
            if candidate.spec.name != HOST
        )
        return Rival(parts, loss, max(0.0, loss) / total if total else 0.0)

    @cached_property
    def _problem(self) -> GraphCover:
        """The covering problem with known costs; candidates of unknown cost are invalid."""
        cover = GraphCover.of(self.graph, self.cover.candidates, self.boundaries, self.conflicts)
        unknown = dict.fromkeys(range(len(cover.candidates)), INVALID)
        known_costs = final_costs(cover.candidates, self.cover.estimates, shrink=True)
        problem = cover.problem.with_costs({**unknown, **known_costs})
        return GraphCover(cover.graph, cover.candidates, cover.nodes, problem)

    @cached_property
    def _piece(self) -> Mapping[CandidatePartition, int]:
        return {candidate: piece for piece, candidate in enumerate(self._problem.candidates)}

    def _candidates_of(self, partitions: Iterable[Partition]) -> dict[Partition, CandidatePartition]:
        by_key = {(partition.nodes, partition.target): partition for partition in partitions}
        candidates: dict[Partition, CandidatePartition] = {}
        for candidate in self.tried:
            key = self.numbers(candidate.sub_graph), str(candidate.spec.target)
            if key in by_key and candidate in self._piece:
                candidates.setdefault(by_key[key], candidate)
        return candidates

    @cached_property
    def _basis(self) -> tuple[Compared, Rivals | None]:
        predicted = self.cover.best.partitions
        for basis, partitions in ((Compared.CHOSEN, self.chosen), (Compared.PREDICTED, predicted)):
            candidates = self._candidates_of(partitions)
            if len(candidates) == len(partitions):
                rivals = Rivals.of(
                    self._problem.problem, [self._piece[candidate] for candidate in candidates.values()]
                )
                if rivals is not None:
                    return basis, rivals
        return Compared.NOTHING, None
