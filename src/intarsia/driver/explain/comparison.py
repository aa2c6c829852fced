"""What candidates of a function would cost in place of what was chosen."""

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
from intarsia.driver.explain.explained_function import Compared, Rival, RivalPart, short_label
from intarsia.support.number_ranges import ranges_text

MOST_COVERS: Final = 100
"""Candidates of a function for which a cover with them is looked for, at most; of a large one fewer."""

_COVERED: Final = 10_000
"""Nodes that these covers have together, so that the time does not grow with the function."""

_LEAST_COVERS: Final = 10


@dataclass(eq=False)
class Comparison:
    """The chosen cover of a function, or the cheapest predicted one, against others.

    Costs are those of the search: measured, and shrunk by their uncertainty.

    Attributes:
        graph: Of the function.
        cover: How it was searched.
        chosen: Its partitions.
        boundaries: What borders cost.
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
        """The stable number of each node of the graph that has one."""
        return {index: number for number, index in enumerate(stable_nodes(self.graph))}

    @cached_property
    def tried(self) -> tuple[CandidatePartition, ...]:
        """Candidates of toolchains."""
        return tuple(each for each in self.cover.candidates if each.spec.name != HOST)

    @cached_property
    def own(self) -> Mapping[Partition, CandidatePartition]:
        """The candidates that the chosen partitions are; some may be none."""
        return self._candidates_of(self.chosen)

    @property
    def basis(self) -> Compared:
        """What is compared with."""
        return self._basis[0]

    @property
    def chosen_seconds(self) -> float | None:
        """What the chosen cover is predicted to take, if all of it was measured."""
        basis, rivals = self._basis
        return rivals.cost if rivals is not None and basis is Compared.CHOSEN else None

    def numbers(self, sub_graph: SubGraph) -> tuple[int, ...]:
        """The stable numbers of a sub-graph."""
        return tuple(self.number[index] for index in sub_graph.inside if index in self.number)

    @cached_property
    def at_least(self) -> Mapping[CandidatePartition, float]:
        """Seconds that each candidate would cost more, at least."""
        rivals = self._basis[1]
        found = {} if rivals is None else rivals.at_least()
        return {self._problem.candidates[piece]: loss for piece, loss in found.items() if math.isfinite(loss)}

    def at_most(self, candidate: CandidatePartition) -> float | None:
        """Seconds more of a cover with a candidate; for the first `MOST_COVERS` that are asked for."""
        rivals = self._basis[1]
        most = min(MOST_COVERS, max(_LEAST_COVERS, _COVERED // max(1, len(self.number))))
        if rivals is None or candidate not in self._piece or self._covers >= most:
            return None
        self._covers += 1
        return rivals.with_piece(self._piece[candidate])

    def rival(self, partition: Partition) -> Rival | None:
        """The runner-up on the nodes of a chosen partition."""
        basis, rivals = self._basis
        if rivals is None or basis is not Compared.CHOSEN:
            return None
        found = rivals.without_piece(self._piece[self.own[partition]])
        if found is None:
            return None
        pieces, loss = rivals.problem.pieces, found.cost
        seconds = {self._problem.candidates[piece]: pieces[piece].floor for piece in found.pieces}
        total = sum(seconds.values())
        parts = tuple(
            RivalPart(
                each.spec.name,
                ranges_text(self.numbers(each.sub_graph)),
                short_label(each.sub_graph.label),
                seconds[each],
            )
            for each in seconds
            if each.spec.name != HOST
        )
        return Rival(parts, loss, max(0.0, loss) / total if total else 0.0)

    @cached_property
    def _problem(self) -> GraphCover:
        """The covering problem with what is known; what is not known cannot be chosen."""
        cover = GraphCover.of(self.graph, self.cover.candidates, self.boundaries, self.conflicts)
        unknown = dict.fromkeys(range(len(cover.candidates)), INVALID)
        known = final_costs(cover.candidates, self.cover.estimates, shrink=True)
        problem = cover.problem.with_costs({**unknown, **known})
        return GraphCover(cover.graph, cover.candidates, cover.nodes, problem)

    @cached_property
    def _piece(self) -> Mapping[CandidatePartition, int]:
        return {candidate: piece for piece, candidate in enumerate(self._problem.candidates)}

    def _candidates_of(self, partitions: Iterable[Partition]) -> dict[Partition, CandidatePartition]:
        wanted = {(each.nodes, each.target): each for each in partitions}
        found: dict[Partition, CandidatePartition] = {}
        for each in self.tried:
            key = self.numbers(each.sub_graph), str(each.spec.target)
            if key in wanted and each in self._piece:
                found.setdefault(wanted[key], each)
        return found

    @cached_property
    def _basis(self) -> tuple[Compared, Rivals | None]:
        predicted = self.cover.best.partitions
        for basis, partitions in ((Compared.CHOSEN, self.chosen), (Compared.PREDICTED, predicted)):
            found = self._candidates_of(partitions)
            if len(found) == len(partitions):
                rivals = Rivals.of(self._problem.problem, [self._piece[each] for each in found.values()])
                if rivals is not None:
                    return basis, rivals
        return Compared.NOTHING, None
