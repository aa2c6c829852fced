"""What makes the fields of a tuple, and what uses the tuple."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from intarsia.collage.candidates.candidate_partition import CandidatePartition
from intarsia.collage.rules.candidate_pool import CandidatePool
from intarsia.ir import Tuple
from intarsia.op import OpPatternKind


@dataclass(frozen=True, slots=True)
class TupleArgCombinerRule:
    """Injective producers of all fields of a tuple, the tuple, and an injective user become one.

    (Seed collage_rfc.) Every field must have a producer; where there are several, all ways to choose are
    tried. Operators of the language take no tuples: this is for fields of tuples and for functions.
    """

    def combined(self, pool: CandidatePool, newest: CandidatePartition) -> Iterator[CandidatePartition]:
        """Every way in which the newest is the user, or one of the producers."""
        if newest.sub_graph.kind > OpPatternKind.INJECTIVE:
            return
        graph = pool.graph
        for node in newest.sub_graph.input:
            if isinstance(graph[node].expr, Tuple):
                yield from _around(pool, node, newest, None)
        for node in newest.sub_graph.output:
            if isinstance(graph[node].expr, Tuple):
                for user in pool.consumers(node):
                    if user.sub_graph.kind <= OpPatternKind.INJECTIVE:
                        yield from _around(pool, node, user, newest)


def _around(
    pool: CandidatePool, node: int, user: CandidatePartition, among: CandidatePartition | None
) -> Iterator[CandidatePartition]:
    """Unions around a tuple; with `among` given, only those that it produces a field of."""
    graph = pool.graph
    if graph.kinds[node] > OpPatternKind.INJECTIVE:
        return
    fields = [field for field in graph[node].inputs if field not in graph.everywhere]
    producers = [
        [one for one in pool.producers(field) if one.sub_graph.kind <= OpPatternKind.INJECTIVE]
        for field in fields
    ]
    for chosen in product(*producers):
        parts = tuple(dict.fromkeys(chosen))
        if (among is None or among in parts) and _are_disjoint((*parts, user), node):
            found = pool.union((*parts, user), graph.set_of([node]))
            if found is not None:
                yield found


def _are_disjoint(parts: tuple[CandidatePartition, ...], node: int) -> bool:
    bits = 1 << node
    for part in parts:
        if bits & part.sub_graph.inside.bits:
            return False
        bits |= part.sub_graph.inside.bits
    return True
