"""What makes a tuple, and its fields."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from intarsia.collage.candidates.candidate_partition import CandidatePartition
from intarsia.collage.rules.candidate_pool import CandidatePool
from intarsia.ir import TupleGetItem
from intarsia.op import OpPatternKind


@dataclass(frozen=True, slots=True)
class TupleProjCombinerRule:
    """An injective candidate that makes a tuple takes in what picks the fields (seed collage_rfc).

    All fields of a tuple that are used go together: without one of them, the tuple itself would be handed
    out beside the others.
    """

    def combined(self, pool: CandidatePool, newest: CandidatePartition) -> Iterator[CandidatePartition]:
        """The newest with the fields of each tuple that it makes."""
        sub_graph, graph = newest.sub_graph, pool.graph
        if sub_graph.kind > OpPatternKind.INJECTIVE:
            return
        for node in sub_graph.exit:
            fields = [
                user
                for user in graph[node].outputs
                if user not in sub_graph.inside
                and isinstance(graph[user].expr, TupleGetItem)
                and graph.kinds[user] <= OpPatternKind.INJECTIVE
            ]
            found = pool.union((newest,), graph.set_of(fields)) if fields else None
            if found is not None:
                yield found
