"""The programs that a search for substitutions may go on from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

from intarsia.ir import IRModule, structural_digest
from intarsia.tune.instruction import Instruction
from intarsia.tune.passes.rewrite_estimate import estimated_cost
from intarsia.tune.substitution import (
    Dataflow,
    Substitution,
    SubstitutionRule,
    applied,
    choice_of,
    find_substitutions,
)
from intarsia.tune.trace import Trace


@dataclass(eq=False, slots=True)
class RewrittenProgram:
    """A program that substitutions have led to.

    Attributes:
        trace: How; before passes that candidates go through to be evaluated.
        cost: What it costs behind those.
        flow: Its dataflow, for substitutions.
        waiting: Substitutions that have not been tried, the most promising first; None if not looked for yet.
    """

    trace: Trace
    cost: float
    flow: Dataflow | None = None
    waiting: list[Substitution] | None = None

    def successors(
        self, rules: Sequence[SubstitutionRule], seen: set[str], most: float, is_estimated: bool
    ) -> list[tuple[Substitution, IRModule]]:
        """The next programs that one substitution makes of this one and that nobody has seen, at most `most`.

        Args:
            rules: What may be substituted.
            seen: Digests of programs; those of the new ones are added.
            most: How many are wanted.
            is_estimated: Whether those that are estimated to cost least come first; else the order is that
                of the rules.
        """
        if self.flow is None or self.waiting is None:
            self.flow = Dataflow.of(self.trace.out_mod)
            self.waiting = list(find_substitutions(self.flow, rules))
            if is_estimated:
                flow = self.flow
                self.waiting.sort(key=lambda each: estimated_cost(applied(flow, each.new, each.place)))
        found: list[tuple[Substitution, IRModule]] = []
        while self.waiting and len(found) < most:
            next_one = self.waiting.pop(0)
            mod = applied(self.flow, next_one.new, next_one.place)
            digest = structural_digest(mod)
            if digest not in seen:
                seen.add(digest)
                found.append((next_one, mod))
        return found

    def extended(self, found: Sequence[tuple[Substitution, IRModule]], name: str) -> Iterator[Trace]:
        """The traces of successors: one instruction with a choice each, decided for each of them in turn."""
        instruction = Instruction(name, {str(each): choice_of(each) for each, _ in found})
        for each, mod in found:
            trace = self.trace.copy()
            trace.note(instruction, str(each), mod)
            yield trace


@dataclass(slots=True)
class Frontier:
    """Programs to go on from, the cheapest first, of equal ones the earliest (TASO, algorithm 2)."""

    _heap: list[tuple[float, int, RewrittenProgram]] = field(default_factory=list)
    _count: int = 0

    def add(self, program: RewrittenProgram) -> None:
        """One more program."""
        heappush(self._heap, (program.cost, self._count, program))
        self._count += 1

    def pop(self) -> RewrittenProgram:
        """The next program."""
        return heappop(self._heap)[2]

    def __bool__(self) -> bool:
        return bool(self._heap)
