"""Explanation of the partitions of a function: plain records.

Times are seconds of one run. Nodes are stable numbers of a function's expressions, as ranges: "3,5..6".
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from intarsia.support.number_ranges import parse_ranges

_LABELS: Final = 4
"""Maximum number of operators in the label of a sub-graph."""


def short_label(label: str) -> str:
    """Return the operators of a sub-graph, "Conv+Relu"; of many, the first, the last and their number."""
    names = label.split("+")
    return label if len(names) <= _LABELS else f"{names[0]} to {names[-1]}, {len(names)}"


class Fate(StrEnum):
    """Outcome of a candidate."""

    CHOSEN = "chosen"
    LOST = "lost"
    """It works, but other candidates cost less."""
    UNSUPPORTED = "unsupported"
    """The toolchain does not support it."""
    FAILED = "failed"
    WRONG = "wrong"
    CRASHED = "crashed"
    TIMED_OUT = "timed out"
    OUT_OF_MEMORY = "out of memory"
    NOT_TRIED = "not tried"


class Compared(StrEnum):
    """Basis of the losses of candidates."""

    CHOSEN = "chosen"
    """The chosen cover."""
    PREDICTED = "predicted"
    """The cheapest predicted cover, because the chosen partitions are not among the candidates."""
    NOTHING = "nothing"
    """None: not all of the predicted cover was measured."""


@dataclass(frozen=True, slots=True)
class NodeRecord:
    """An expression of a function.

    Attributes:
        number: Stable number of the expression.
        operator: Name of the operator, such as "Conv".
        name: Name of the node in the ONNX model that it was imported from, or "".
    """

    number: int
    operator: str
    name: str


@dataclass(frozen=True, slots=True)
class Tried:
    """A candidate: a set of nodes for a toolchain.

    Attributes:
        spec: Name of the partition spec: the toolchain, or the whole target if several share the toolchain.
        target: Text of the target.
        nodes: Nodes as ranges of stable numbers.
        label: Operators: "Conv+Relu", or "Conv to Add, 12".
        rule: Name of the rule that proposed it.
        fate: Outcome.
        message: Reason, if it did not work or was not tried.
        seconds: Latency by itself in seconds, if measured.
        low: Lower end of the 95 % interval in seconds, or None if it is open.
        high: Upper end of the interval in seconds.
        loss_low: Lower bound in seconds of the loss of every cover with this candidate against
            the basis; below 0 if it may take less. None if it does not work or was not compared.
        loss_high: Upper bound in seconds: the loss of a cover that keeps all other chosen partitions, except
            those that overlap the candidate.
    """

    spec: str
    target: str
    nodes: str
    label: str
    rule: str
    fate: Fate
    message: str
    seconds: float | None
    low: float | None
    high: float | None
    loss_low: float | None
    loss_high: float | None


@dataclass(frozen=True, slots=True)
class RivalPart:
    """One partition of a rival, with its latency by itself in seconds."""

    spec: str
    nodes: str
    label: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Rival:
    """The cheapest alternative for the nodes of a region, with all other regions unchanged.

    Attributes:
        parts: Partitions that run the nodes instead.
        loss: Additional seconds, including its boundaries; below 0 if it is predicted to take less.
        faster: Share of their time by which its parts would have to become faster to win; above 1 they cannot
            win, because the boundaries alone cost more.
    """

    parts: tuple[RivalPart, ...]
    loss: float
    faster: float


@dataclass(frozen=True, slots=True)
class ExplainedRegion:
    """A chosen partition, with the candidates that were tried on its nodes.

    Attributes:
        toolchain: Toolchain of the partition; "host" for operators outside of all partitions.
        target: Text of the target.
        nodes: Nodes as ranges of stable numbers.
        label: Operators.
        predicted: Latency by itself in seconds, if measured.
        low: Lower end of the 95 % interval in seconds, or None if it is open.
        high: Upper end of the interval in seconds.
        measured: Latency within the executable in seconds, the median of a few runs.
        rival: The runner-up, if there is one.
        tried: Candidates with their first node in the partition: the chosen one, then the cheapest ones.
        left_out: Number of candidates that are not listed.
    """

    toolchain: str
    target: str
    nodes: str
    label: str
    predicted: float | None
    low: float | None
    high: float | None
    measured: float | None
    rival: Rival | None
    tried: tuple[Tried, ...]
    left_out: int

    @property
    def numbers(self) -> tuple[int, ...]:
        """Stable numbers of the nodes."""
        return parse_ranges(self.nodes) if self.nodes else ()


@dataclass(frozen=True, slots=True)
class SearchRecord:
    """The search for the partitions of a function.

    Attributes:
        specs: Names of the partition specs, without the host's.
        candidates: Number of candidates.
        measured: Number of candidates that were measured in this run.
        known: Number of candidates with a measurement in the database.
        failed: Number of candidates that do not work.
        not_tried: Number of candidates that were never measured.
        dropped: Number of discarded proposals, by reason.
        seconds: Duration of the search.
        predicted: Predicted latency of the cheapest cover in seconds.
        lower_bound: Lower bound of the latency of every cover in seconds.
        gap: Optimality gap as a share of the predicted latency; 0 if it is the optimum.
        is_exact: Whether the cover is proven to be the optimum.
        chosen: Predicted latency of the chosen cover in seconds, if all of it was measured.
        compared: Basis of the losses of candidates.
    """

    specs: tuple[str, ...]
    candidates: int
    measured: int
    known: int
    failed: int
    not_tried: int
    dropped: dict[str, int]
    seconds: float
    predicted: float
    lower_bound: float
    gap: float
    is_exact: bool
    chosen: float | None
    compared: Compared


@dataclass(frozen=True, slots=True)
class FunctionRecord:
    """One function of the model.

    Attributes:
        name: Name of the function.
        nodes: Expressions with an operator.
        regions: Partitions, and the operators outside of them.
        search: Search for the partitions; None if one toolchain runs the function without a search.
    """

    name: str
    nodes: tuple[NodeRecord, ...]
    regions: tuple[ExplainedRegion, ...]
    search: SearchRecord | None
