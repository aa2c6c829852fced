"""Heuristic passes, which decisions are about, and feedback passes, which decide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from intarsia.support.errors import UsageError
from intarsia.transform import Pass, Sequential
from intarsia.transform.pass_trace import plain_options
from intarsia.tune.choice import Choice
from intarsia.tune.instruction import Instruction

APPLIED: Final = "Applied"
"""The decision of the one-choice instruction that a heuristic pass becomes in a trace."""


class FeedbackPass(Pass):
    """A pass that decides by evaluating candidates: a trace records its decisions, not the pass."""


@dataclass(frozen=True, slots=True)
class HeuristicPass:
    """A pass without a feedback loop, as something to decide about (seed relax_pass_infra, HeuristicPass).

    In the seed this is the base class of all passes that are no tuning passes. Here these are all passes but
    those with a `FeedbackPass` as base, and what a trace and a tuning pass make of one is this.

    Attributes:
        item: The pass, with its options.

    Raises:
        UsageError: It is a sequence, which has no name of its own, or a tuning pass, which decides by itself.
    """

    item: Pass

    def __post_init__(self) -> None:
        """Check what is often given instead."""
        if isinstance(self.item, Sequential):
            raise UsageError(f"the sequence {self.name} is no single pass", help="make a choice of each pass")
        if isinstance(self.item, FeedbackPass):
            raise UsageError(
                f"{self.name} decides by itself", help="put it in a row, or into eval_passes, instead"
            )

    @property
    def name(self) -> str:
        """Name of the pass."""
        return self.item.info.name

    @property
    def choice(self) -> Choice:
        """The choice that applies it, by its name and options.

        Raises:
            UsageError: An option is no plain data.
        """
        return Choice(self.name, plain_options(self.item))

    @property
    def applied(self) -> Instruction:
        """The instruction with one choice that stands in a trace for what it did."""
        return Instruction(self.name, {APPLIED: self.choice})
