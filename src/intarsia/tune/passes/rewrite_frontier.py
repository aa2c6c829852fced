"""The priority queue of programs in a search for substitutions."""

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
        trace: Trace of the substitutions, before the `eval_passes` of candidates.
        cost: Cost after the `eval_passes`.
        expansion: Programs after one more substitution; None before they are searched.
        tried: Number of these programs that were taken, in order.
    """

    trace: Trace
    cost: float
    expansion: Expansion | None = None
    tried: int = 0

    def take_successors(
        self, expand: Callable[[IRModule], Expansion], seen: set[str], most: float
    ) -> list[RewrittenOnce]:
        """Take the next unseen programs after one more substitution, at most `most`.

        Args:
            expand: Function that returns the expansion of a program.
            seen: Digests of programs; those of the taken ones are added.
            most: Maximum number of programs.
        """
        if self.expansion is None:
            self.expansion = expand(self.trace.out_mod)
        successors: list[RewrittenOnce] = []
        while self.is_open and len(successors) < most:
            successor = self.expansion.rewrite(self.tried)
            self.tried += 1
            if successor.failure or successor.digest not in seen:
                seen.add(successor.digest)
                successors.append(successor)
        return successors

    @property
    def is_open(self) -> bool:
        """Whether there are substitutions that were not taken."""
        return self.expansion is None or self.tried < len(self.expansion.substitutions)

    def successor_traces(self, successors: Sequence[RewrittenOnce], name: str) -> Iterator[Trace]:
        """Yield the traces of successors: they share an instruction with one choice for each."""
        choices = {str(successor.substitution): choice_of(successor.substitution) for successor in successors}
        instruction = Instruction(name, choices)
        for successor in successors:
            trace = self.trace.copy()
            trace.note(instruction, str(successor.substitution), successor.mod)
            if successor.failure:
                trace.fail(successor.failure)
            yield trace


@dataclass(slots=True)
class Frontier:
    """Priority queue of programs, the cheapest first, of equal ones the earliest (TASO, algorithm 2)."""

    _heap: list[tuple[float, int, RewrittenProgram]] = field(default_factory=list)
    _count: int = 0

    def add(self, program: RewrittenProgram) -> None:
        """Add a program."""
        heappush(self._heap, (program.cost, self._count, program))
        self._count += 1

    def pop(self) -> RewrittenProgram:
        """Remove and return the cheapest program."""
        return heappop(self._heap)[2]

    def __bool__(self) -> bool:
        return bool(self._heap)
