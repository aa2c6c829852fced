"""A loop whose body is being written: what must still be put before it, and at its head."""

from __future__ import annotations

from dataclasses import dataclass, field

from intarsia.native.emission.builder import Lines

Terms = tuple[tuple[int, int], ...]
"""Numbers of symbols, ascending, each with its coefficient."""


@dataclass(slots=True, eq=False)
class LoopFrame:
    """A loop whose body is being written, or the function itself.

    Attributes:
        before: Where lines that run once before the loop are written.
        phis: Where the phis at the head of its body are written.
        entered_from: Label of the block before it.
        start: First value of the counter; a function has none.
        pointers: Names of the pointers that advance with it, by base and terms.
        pending: What each phi gets: name, type, value before the loop, value from the last iteration.
    """

    before: Lines
    phis: Lines
    entered_from: str
    start: str | None
    pointers: dict[tuple[str, Terms], str] = field(default_factory=dict)
    pending: list[tuple[str, str, str, str]] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
