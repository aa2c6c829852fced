"""Frame of an open loop: lines that must still be added before it, and at its head."""

from __future__ import annotations

from dataclasses import dataclass, field

from intarsia.native.emission.builder import Lines

Terms = tuple[tuple[int, int], ...]
"""Pairs of a symbol's number, ascending, and its coefficient."""


@dataclass(slots=True, eq=False)
class LoopFrame:
    """A loop whose body is being written, or the function itself.

    Attributes:
        before: Hole for lines that run once before the loop.
        phis: Hole for the phis at the head of its body.
        entered_from: Label of the block before it.
        start: First value of the counter; a function has none.
        pointers: Names of the pointers that advance with the loop, by base and terms.
        pending: Operands of each phi: name, type, value before the loop, value from the last iteration.
    """

    before: Lines
    phis: Lines
    entered_from: str
    start: str | None
    pointers: dict[tuple[str, Terms], str] = field(default_factory=dict)
    pending: list[tuple[str, str, str, str]] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
