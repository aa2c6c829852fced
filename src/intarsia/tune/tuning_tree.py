"""What tuning passes tried, as a tree: passes, their candidates, the passes inside these."""

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
        name: Of the pass, or what a candidate decides.
        trace: Of a candidate; None for a pass.
        children: Of a pass its candidates, of a candidate the tuning passes that it went through.
        best: Of a pass the trace that it has chosen.
    """

    name: str
    trace: Trace | None = None
    children: list[TuningNode] = field(default_factory=list)
    best: Trace | None = None

    def add(self, name: str, trace: Trace | None = None) -> TuningNode:
        """A new child."""
        node = TuningNode(name, trace)
        self.children.append(node)
        return node

    def note(self, candidates: Sequence[Trace], since: int) -> None:
        """Add candidates that are not there yet.

        Args:
            candidates: Evaluated or not.
            since: How many decisions were made before those of the pass.
        """
        known = {id(child.trace) for child in self.children}
        for candidate in candidates:
            if id(candidate) not in known:
                self.add(decisions_text(candidate, since), candidate)

    def take_over(self, other: TuningNode) -> None:
        """Add the passes of another node; they replace those of which they try all again."""
        for child in other.children:
            tried = {each.name for each in child.children}
            self.children = [
                known
                for known in self.children
                if known.name != child.name or not {each.name for each in known.children} <= tried
            ]
            self.children.append(child)

    @property
    def count(self) -> int:
        """How many candidates there are in it that no pass inside has tried in its place."""
        if self.trace is not None and not any(child.children for child in self.children):
            return 1
        return sum(child.count for child in self.children)

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        found: dict[str, Any] = {"name": self.name}
        if self.trace is not None:
            found |= {"perf": None if self.trace.perf is None else repr(self.trace.perf)}
            found |= {"fate": self.trace.fate}
        return found | {"children": [child.to_json() for child in self.children]}

    def __str__(self) -> str:
        """A line a node, what is inside indented; the choice of each pass is marked."""
        return "\n".join(self._lines(is_best=False))

    def _lines(self, is_best: bool) -> Iterator[str]:
        yield f"{self.name}{self._cost}{'  <- chosen' if is_best else ''}"
        for child in self.children:
            is_chosen = self.best is not None and child.trace is self.best
            yield from (f"  {line}" for line in child._lines(is_chosen))

    @property
    def _cost(self) -> str:
        if self.trace is None:
            return ""
        if self.trace.fate or self.trace.perf is None:
            return f": {self.trace.fate or 'not evaluated'}"
        return f": {1e3 * self.trace.perf:.4g} ms"


def decisions_text(trace: Trace, since: int) -> str:
    """The decisions of a trace from a number on, such as "On, NHWC"."""
    return ", ".join(step.decision for step in trace.steps[since:]) or "as it is"
