"""Evaluators of candidates and their results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import Protocol, runtime_checkable

from intarsia.ir import IRModule
from intarsia.native.roofline import Roofline
from intarsia.target import Target
from intarsia.tune.kernel_answers import KernelAnswers
from intarsia.tune.trace import Trace, is_cost


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The cost of a candidate.

    Attributes:
        perf: Cost by the evaluator's metric, usually seconds; less is better, infinite is a failure. Any
            other number that is no cost (NaN, or below 0) becomes a failure.
        fate: Reason of a failure, to be printed; "" without one.
        is_new: Whether this evaluation measured the candidate.
        is_first: Whether this run evaluates the program for the first time; None if equal to `is_new`.
    """

    perf: float
    fate: str = ""
    is_new: bool = True
    is_first: bool | None = None

    def __post_init__(self) -> None:
        """Make a failure of what is no cost: NaN and negative numbers would win every comparison."""
        if not (self.perf == inf or is_cost(self.perf)):
            reason = self.fate or f"its cost is {self.perf:g}; expected a finite number, 0 or more"
            object.__setattr__(self, "fate", reason)
            object.__setattr__(self, "perf", inf)

    @property
    def is_ok(self) -> bool:
        """Whether the candidate works."""
        return isfinite(self.perf)


FAILED = inf
"""The cost of what does not work."""


class Evaluator(Protocol):
    """Evaluates candidates; equal ones share one measurement."""

    def evaluate(self, candidates: Sequence[Trace]) -> Sequence[Evaluation]:
        """Return the cost of each candidate, in order."""


@runtime_checkable
class EvaluatorOfParts(Evaluator, Protocol):
    """An evaluator of the programs of one model that can also evaluate parts of it."""

    def for_part(self, mod: IRModule) -> Evaluator:
        """Return the evaluator of candidates for a part: the same for equal parts.

        Args:
            mod: The part, as a program.
        """


@runtime_checkable
class EvaluatorOfKernels(Evaluator, Protocol):
    """An evaluator that can time native's kernels within candidates."""

    def time_kernels(
        self, candidates: Sequence[Trace], kernels: Sequence[str]
    ) -> list[tuple[float, ...]] | None:
        """Return the seconds of kernels in one run of each candidate; None if they cannot be timed now.

        Args:
            candidates: Candidates for the whole program; they are timed interleaved.
            kernels: Keys of the timed kernels (`measure.kernel_times`), in the order of the results.
        """


@runtime_checkable
class EvaluatorWithRoofline(Evaluator, Protocol):
    """An evaluator that measures on a machine whose roofline is known."""

    def roofline(self, threads: int) -> Roofline:
        """Return the roofline of the machine that kernels are timed on.

        Args:
            threads: Number of threads that run a kernel.
        """


@runtime_checkable
class EvaluatorWithAnswers(Evaluator, Protocol):
    """An evaluator with what earlier runs have learned about decisions on kernels."""

    @property
    def kernel_answers(self) -> KernelAnswers:
        """The answers of other models on this machine; new ones are added to them."""


@runtime_checkable
class EvaluatorForTarget(Evaluator, Protocol):
    """An evaluator that compiles functions without a toolchain for a default target.

    Attributes:
        target: Target of functions that the program assigns to no toolchain.
    """

    target: Target


def target_of(evaluator: Evaluator) -> str:
    """Return the text of an evaluator's default target; "" if it has none."""
    return str(evaluator.target) if isinstance(evaluator, EvaluatorForTarget) else ""


def evaluator_of_part(evaluator: Evaluator, mod: IRModule) -> Evaluator:
    """Return the evaluator of candidates for a part; the evaluator itself if it does not distinguish parts.

    Args:
        evaluator: Evaluator of candidates for the whole program.
        mod: The part, as a program.
    """
    return evaluator.for_part(mod) if isinstance(evaluator, EvaluatorOfParts) else evaluator
