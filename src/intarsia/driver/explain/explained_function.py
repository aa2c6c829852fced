"""Why the parts of a function are run as they are: plain records.

Times are seconds of one run. Nodes are stable numbers of a function's expressions, as ranges: "3,5..6".
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from intarsia.support.number_ranges import parse_ranges

_LABELS: Final = 4
"""Operators of a sub-graph that are named."""


def short_label(label: str) -> str:
    """The operators of a sub-graph, "Conv+Relu"; of many, the first and the last one and the number."""
    names = label.split("+")
    return label if len(names) <= _LABELS else f"{names[0]} to {names[-1]}, {len(names)}"


class Fate(StrEnum):
    """What became of a candidate."""

    CHOSEN = "chosen"
    LOST = "lost"
    """It works, and others cost less."""
    UNSUPPORTED = "unsupported"
    """The toolchain refuses it."""
    FAILED = "failed"
    WRONG = "wrong"
    CRASHED = "crashed"
    TIMED_OUT = "timed out"
    OUT_OF_MEMORY = "out of memory"
    NOT_TRIED = "not tried"


class Compared(StrEnum):
    """What the losses of candidates are against."""

    CHOSEN = "chosen"
    """What was chosen."""
    PREDICTED = "predicted"
    """What was predicted to be the cheapest: what was chosen is made of other parts than the candidates."""
    NOTHING = "nothing"
    """Not even that was measured as a whole."""


@dataclass(frozen=True, slots=True)
class NodeRecord:
    """An expression of a function.

    Attributes:
        number: Its stable number.
        operator: What it does, such as "Conv".
        name: Of the node in the ONNX model that it comes from, or "".
    """

    number: int
    operator: str
    name: str


@dataclass(frozen=True, slots=True)
class Tried:
    """A candidate: some nodes for a toolchain.

    Attributes:
        spec: Name of the partition spec: the toolchain, or the whole target if several share the toolchain.
        target: Text of the target.
        nodes: Its nodes.
        label: Its operators: "Conv+Relu", or "Conv to Add, 12".
        rule: The rule that proposed it.
        fate: What became of it.
        message: Why, if it did not work or was not tried.
        seconds: What it takes by itself, if that was measured.
        low: Lower end of the 95 % interval, or None if it is open.
        high: Upper end of the interval.
        loss_low: Every way to run the function that has it is predicted to take at least so much more than
            what was chosen; below 0 if it may take less. None if it does not work or was not compared.
        loss_high: Some way does that takes so much more: everything else is left as it was chosen, but for
            the partitions that it cuts into.
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
    """One partition of a rival, and what it takes by itself."""

    spec: str
    nodes: str
    label: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Rival:
    """The cheapest other way to run the nodes of a region, all other regions being as they are.

    Attributes:
        parts: What runs the nodes instead.
        loss: What it takes more, with its borders; below 0 if it is predicted to take less.
        faster: By which part of their time its parts would have to become faster to win; above 1: they cannot
            win, as the borders alone cost more.
    """

    parts: tuple[RivalPart, ...]
    loss: float
    faster: float


@dataclass(frozen=True, slots=True)
class Region:
    """A partition that was chosen, and all that was tried on its nodes.

    Attributes:
        toolchain: Who runs it; "host" for what is in no partition.
        target: Text of the target.
        nodes: Its nodes.
        label: Its operators.
        predicted: What it takes by itself, if that was measured.
        low: Lower end of the 95 % interval, or None if it is open.
        high: Upper end of the interval.
        measured: What it takes in the executable, the median over a few runs.
        rival: The runner-up, if there is one.
        tried: Candidates that begin on its nodes, the chosen one first, then those that cost least.
        left_out: Candidates that are not listed.
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
        """Its nodes as numbers."""
        return parse_ranges(self.nodes) if self.nodes else ()


@dataclass(frozen=True, slots=True)
class SearchRecord:
    """The search for the partitions of a function.

    Attributes:
        specs: Names of the partition specs, that of the host not among them.
        candidates: How many were proposed and looked at.
        measured: How many were measured in this run.
        known: How many the database knew.
        failed: How many do not work.
        not_tried: How many were never measured.
        dropped: How many were not looked at, by reason.
        seconds: Time of the search.
        predicted: What the cheapest cover is predicted to take.
        lower_bound: What every cover takes at least.
        gap: The part of the predicted time by which it may miss the optimum; 0 if it is the optimum.
        is_exact: Whether it is known to be the optimum.
        chosen: What the chosen cover is predicted to take, if all of it was measured.
        compared: What the losses of candidates are against.
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
        name: Its name.
        nodes: Its expressions that have an operator.
        regions: What runs where.
        search: How that was found; None if one toolchain was given all of it without a search.
    """

    name: str
    nodes: tuple[NodeRecord, ...]
    regions: tuple[Region, ...]
    search: SearchRecord | None
