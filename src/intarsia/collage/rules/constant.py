"""Constants that are used go inside."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from intarsia.collage.candidates.candidate_partition import CandidatePartition
from intarsia.collage.rules.candidate_pool import CandidatePool
from intarsia.ir import Constant


@dataclass(frozen=True, slots=True)
class ConstantCombinerRule:
    """A candidate takes in all constants that it uses, at once (seed collage_rfc).

    With `ConstantPlacement.BOUND`, which is the default, functions hold their constants anyhow: this is for
    rewriting with PARAMETERS.
    """

    def combined(self, pool: CandidatePool, newest: CandidatePartition) -> Iterator[CandidatePartition]:
        """The newest with its constants, if it has any outside."""
        graph = pool.graph
        used = [node for node in newest.sub_graph.input if isinstance(graph[node].expr, Constant)]
        found = pool.union((newest,), graph.set_of(used)) if used else None
        if found is not None:
            yield found
