"""What tuning passes tried, as plain records that an explanation keeps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TuningRecord:
    """A pass, or a candidate of the pass around it, with what is inside.

    Attributes:
        name: Of the pass, or what a candidate decides.
        is_candidate: Which of both.
        seconds: Of a candidate, if it works.
        fate: Why it does not; "" if it does.
        is_chosen: Whether the pass around it has chosen it.
        children: Of a pass its candidates, of a candidate the passes that it went through.
    """

    name: str
    is_candidate: bool
    seconds: float | None
    fate: str
    is_chosen: bool
    children: tuple[TuningRecord, ...]

    @property
    def candidates(self) -> int:
        """How many candidates are in it, those of passes inside and those without a time included."""
        own = int(self.is_candidate and (self.seconds is not None or bool(self.fate)))
        return own + sum(child.candidates for child in self.children)

    def lines(self, depth: int = 0) -> Iterator[str]:
        """A line a record, what is inside indented; what a pass has chosen is marked."""
        cost = f": {1e3 * self.seconds:.4g} ms" if self.seconds is not None else ""
        reason = f": {self.fate}" if self.fate else ""
        yield f"{'  ' * depth}{self.name}{cost}{reason}{'  <- chosen' if self.is_chosen else ''}"
        for child in self.children:
            yield from child.lines(depth + 1)
