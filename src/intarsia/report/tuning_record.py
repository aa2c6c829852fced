"""Candidates of tuning passes, as plain records of an explanation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TuningRecord:
    """A tuning pass, or a candidate of its parent pass, with its children.

    Attributes:
        name: Name of the pass, or the decision of the candidate.
        is_candidate: Whether it is a candidate, not a pass.
        seconds: Latency of a candidate, if it works.
        fate: Reason why it does not work, or why a pass has chosen nothing; "" if it does.
        is_chosen: Whether its parent pass has chosen it.
        children: Candidates of a pass, or the passes that a candidate went through.
    """

    name: str
    is_candidate: bool
    seconds: float | None
    fate: str
    is_chosen: bool
    children: tuple[TuningRecord, ...]

    @property
    def candidates(self) -> int:
        """Number of candidates in the tree, including those of nested passes and those without a time."""
        self_count = int(self.is_candidate and (self.seconds is not None or bool(self.fate)))
        return self_count + sum(child.candidates for child in self.children)

    def lines(self, depth: int = 0) -> Iterator[str]:
        """Yield a line per record, children indented, chosen candidates marked."""
        cost = f": {1e3 * self.seconds:.4g} ms" if self.seconds is not None else ""
        reason = f": {self.fate}" if self.fate else ""
        yield f"{'  ' * depth}{self.name}{cost}{reason}{'  <- chosen' if self.is_chosen else ''}"
        for child in self.children:
            yield from child.lines(depth + 1)
