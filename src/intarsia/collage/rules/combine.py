"""Candidates joined to larger ones."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from intarsia.collage.candidates.candidate_partition import CandidatePartition, PartitionRule, PartitionSpec
from intarsia.collage.graph.dataflow_graph import DataflowGraph
from intarsia.collage.rules.candidate_pool import CandidatePool
from intarsia.collage.rules.combiner_rule import CombinerRule
from intarsia.support.callbacks import silent


@dataclass(frozen=True, slots=True)
class CombinePartitionRule:
    """The candidates of a rule, and all that combiner rules make of them (seed collage_rfc).

    Found to a fixpoint: every candidate, joined ones too, meets every other once. They may be invalid. The
    smallest come first, so that where the cap is reached it is large ones that are missing.

    Time: for each candidate its neighbours in the graph, and those steps that joining takes. How many
    candidates there are is up to the combiner rules: linear in the program for chains of bounded depth,
    exponential in its width where anything is joined.

    Attributes:
        sub: The rule to start from.
        combiners: The combiner rules.
        max_depth: The largest depth of what is joined, in nodes; 0 for any.
        max_joined: No more are joined once so many have been; 0 for any number.
        on_note: Called with a sentence for people when that happens.
    """

    sub: PartitionRule
    combiners: tuple[CombinerRule, ...]
    max_depth: int = 0
    max_joined: int = 5_000
    on_note: Callable[[str], None] = field(default=silent, compare=False, repr=False)

    def all_candidates(self, graph: DataflowGraph, spec: PartitionSpec) -> list[CandidatePartition]:
        """The rule's candidates, then the joined ones by the number of steps that they took."""
        candidates = dict.fromkeys(self.sub.all_candidates(graph, spec))
        most = len(candidates) + self.max_joined if self.max_joined else math.inf
        pool = CandidatePool(graph, self.max_depth)
        waiting = deque(candidates)
        while waiting:
            newest = waiting.popleft()
            pool.add(newest)
            for combiner in self.combiners:
                for new in combiner.combined(pool, newest):
                    if new in candidates:
                        continue
                    if len(candidates) >= most:
                        self._report(spec)
                        return list(candidates)
                    candidates[new] = None
                    waiting.append(new)
        return list(candidates)

    def _report(self, spec: PartitionSpec) -> None:
        self.on_note(
            f"{spec.name}: stopped after joining {self.max_joined} candidates; larger ones may be missing"
        )
