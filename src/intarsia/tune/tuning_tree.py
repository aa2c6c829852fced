"""The tuning tree: passes, their candidates, and the passes inside of candidates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from intarsia.tune.trace import Trace

ROOT = "tuning"
"""Name of the node around all passes."""


@dataclass(eq=False)
class TuningNode:
    """A pass, or a candidate of the pass around it.

    Attributes:
        name: Name of the pass, or decisions of the candidate.
        trace: Trace of the candidate; None for a pass.
        children: Candidates of a pass, or tuning passes of a candidate.
        best: Trace that a pass has selected; None for a candidate.
        remark: Why a pass has left the program as it is; "" if it has selected a candidate.
        notes: Further results of a pass, such as the share of each pass of a row; printed by `str`.
    """

    name: str
    trace: Trace | None = None
    children: list[TuningNode] = field(default_factory=list)
    best: Trace | None = None
    remark: str = ""
    notes: list[object] = field(default_factory=list)

    def add(self, name: str, trace: Trace | None = None) -> TuningNode:
        """Add a child and return it."""
        node = TuningNode(name, trace)
        self.children.append(node)
        return node

    def note(self, candidates: Sequence[Trace], since: int) -> None:
        """Add candidates that are not there yet.

        Args:
            candidates: Traces, evaluated or not.
            since: Number of decisions before those of the pass.
        """
        recorded = {id(child.trace) for child in self.children}
        for candidate in candidates:
            if id(candidate) not in recorded:
                self.add(decisions_text(candidate, since), candidate)

    def take_over(self, other: TuningNode) -> None:
        """Add the passes of another node; a pass replaces an earlier run of it that tried a subset."""
        for child in other.children:
            tried = {candidate.name for candidate in child.children}
            self.children = [
                earlier
                for earlier in self.children
                if earlier.name != child.name
                or not {candidate.name for candidate in earlier.children} <= tried
            ]
            self.children.append(child)

    @property
    def count(self) -> int:
        """Number of candidates below the node; a candidate with passes inside counts as theirs."""
        if self.trace is not None and not any(child.children for child in self.children):
            return 1
        return sum(child.count for child in self.children)

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        data: dict[str, Any] = {"name": self.name}
        if self.trace is not None:
            data |= {"perf": None if self.trace.perf is None else repr(self.trace.perf)}
            data |= {"fate": self.trace.fate}
        if self.remark:
            data |= {"remark": self.remark}
        return data | {"children": [child.to_json() for child in self.children]}

    def __str__(self) -> str:
        """One line per node, indented by depth; the selected candidate of each pass is marked."""
        return "\n".join(self._lines(is_best=False))

    def _lines(self, is_best: bool) -> Iterator[str]:
        yield f"{self.name}{self._cost}{'  <- chosen' if is_best else ''}"
        for child in self.children:
            is_chosen = self.best is not None and child.trace is self.best
            yield from (f"  {line}" for line in child._lines(is_chosen))

    @property
    def _cost(self) -> str:
        if self.trace is None:
            return f": {self.remark}" if self.remark else ""
        if self.trace.fate or self.trace.perf is None:
            return f": {self.trace.fate or 'not evaluated'}"
        return f": {1e3 * self.trace.perf:.4g} ms"


def decisions_text(trace: Trace, since: int) -> str:
    """The decisions of a trace from a number on, such as "On, NHWC"."""
    return ", ".join(step.decision for step in trace.steps[since:]) or "as it is"
