"""The programs that a search for substitutions may go on from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

from intarsia.ir import IRModule
from intarsia.tune.instruction import Instruction
from intarsia.tune.passes.rewrite_expansion import Expansion, RewrittenOnce
from intarsia.tune.substitution import choice_of
from intarsia.tune.trace import Trace


@dataclass(eq=False, slots=True)
class RewrittenProgram:
    """A program that substitutions have led to.

    Attributes:
        trace: How; before passes that candidates go through to be evaluated.
        cost: What it costs behind those.
        expansion: What one more substitution makes of it; None if not looked for yet.
        tried: How many of these were looked at, in order.
    """

    trace: Trace
    cost: float
    expansion: Expansion | None = None
    tried: int = 0

    def take_successors(
        self, expanded: Callable[[IRModule], Expansion], seen: set[str], most: float
    ) -> list[RewrittenOnce]:
        """The next programs that one substitution makes of this one and that nobody has seen, at most `most`.

        Args:
            expanded: Tells what substitutions make of a program.
            seen: Digests of programs; those of the new ones are added.
            most: How many are wanted.
        """
        if self.expansion is None:
            self.expansion = expanded(self.trace.out_mod)
        found: list[RewrittenOnce] = []
        while self.is_open and len(found) < most:
            one = self.expansion.rewrite(self.tried)
            self.tried += 1
            if one.digest not in seen:
                seen.add(one.digest)
                found.append(one)
        return found

    @property
    def is_open(self) -> bool:
        """Whether there are substitutions that were not looked at."""
        return self.expansion is None or self.tried < len(self.expansion.substitutions)

    def successor_traces(self, found: Sequence[RewrittenOnce], name: str) -> Iterator[Trace]:
        """The traces of successors: one instruction with a choice each, decided for each of them in turn."""
        choices = {str(each.substitution): choice_of(each.substitution) for each in found}
        instruction = Instruction(name, choices)
        for each in found:
            trace = self.trace.copy()
            trace.note(instruction, str(each.substitution), each.mod)
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
