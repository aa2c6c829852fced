"""Who says what a program costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import Protocol, runtime_checkable

from intarsia.ir import IRModule
from intarsia.target import Target
from intarsia.tune.trace import Trace


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What a candidate costs.

    Attributes:
        perf: By the metric, less is better; infinite if it failed.
        fate: Why it failed, for people; "" if it did not.
        is_new: Whether it was measured now, and not known before.
        is_first: Whether nobody has asked for the program in this run before; None if that is the same.
    """

    perf: float
    fate: str = ""
    is_new: bool = True
    is_first: bool | None = None

    @property
    def is_ok(self) -> bool:
        """Whether the candidate works."""
        return isfinite(self.perf)


FAILED = inf
"""The cost of what does not work."""


class Evaluator(Protocol):
    """Evaluates candidates; equal ones share one measurement."""

    def evaluate(self, candidates: Sequence[Trace]) -> Sequence[Evaluation]:
        """What each costs, in order."""


@runtime_checkable
class EvaluatorOfParts(Evaluator, Protocol):
    """One that evaluates programs of one model, and knows how to do so for parts of it."""

    def for_part(self, mod: IRModule) -> Evaluator:
        """Who evaluates candidates for a part: the same judge for equal parts.

        Args:
            mod: The part, as a program.
        """


@runtime_checkable
class EvaluatorForTarget(Evaluator, Protocol):
    """One that gives what a program gives to nobody to a target.

    Attributes:
        target: Who gets it.
    """

    target: Target


def target_of(evaluator: Evaluator) -> str:
    """Who compiles what a program gives to nobody; "" if an evaluator does not say."""
    return str(evaluator.target) if isinstance(evaluator, EvaluatorForTarget) else ""


def evaluator_of_part(evaluator: Evaluator, mod: IRModule) -> Evaluator:
    """Who evaluates candidates for a part; the evaluator itself where it makes no difference.

    Args:
        evaluator: Who evaluates candidates for the whole.
        mod: The part, as a program.
    """
    return evaluator.for_part(mod) if isinstance(evaluator, EvaluatorOfParts) else evaluator
