"""Evaluation of programs as a whole on one target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from intarsia.ir import IRModule
from intarsia.support.errors import UsageError
from intarsia.target import Target
from intarsia.tune.evaluation_log import LoggingEvaluator
from intarsia.tune.evaluator import FAILED, Evaluation, Evaluator, EvaluatorOfKernels, evaluator_of_part
from intarsia.tune.extension import extended
from intarsia.tune.instruction import Instruction
from intarsia.tune.measuring_evaluator import MeasuringEvaluator
from intarsia.tune.target_options import marked_functions
from intarsia.tune.trace import Trace


@dataclass(frozen=True, eq=False)
class WholeEvaluator:
    """Evaluates programs as whole-program candidates of one target.

    Passes do not change functions of a toolchain. With this evaluator they decide before the program is
    assigned to the toolchain, by its cost there.

    Attributes:
        inner: Evaluator of the placed programs.
        target: Target with a toolchain.
        instruction: Instruction that assigns the program to a target.
        decision: Decision of the instruction for the target.
    """

    inner: Evaluator
    target: Target
    instruction: Instruction
    decision: str

    def evaluate(self, candidates: Sequence[Trace]) -> Sequence[Evaluation]:
        """Evaluate candidates on the target; evaluations in their order.

        Raises:
            UsageError: A candidate has assigned a function to another toolchain.
        """
        placed = [self.place_whole(candidate) for candidate in candidates]
        evaluations = iter(self.inner.evaluate([trace for trace in placed if not trace.has_failed]))
        return [
            Evaluation(FAILED, trace.fate, is_new=False) if trace.has_failed else next(evaluations)
            for trace in placed
        ]

    def time_kernels(
        self, candidates: Sequence[Trace], kernels: Sequence[str]
    ) -> list[tuple[float, ...]] | None:
        """See EvaluatorOfKernels.time_kernels; the candidates are placed on the target.

        Raises:
            UsageError: A candidate has assigned a function to another toolchain.
        """
        if not isinstance(self.inner, EvaluatorOfKernels):
            return None
        placed = [self.place_whole(candidate) for candidate in candidates]
        timed = self.inner.time_kernels([trace for trace in placed if not trace.has_failed], kernels)
        if timed is None:
            return None
        times, failed = iter(timed), (FAILED,) * len(kernels)
        return [failed if trace.has_failed else next(times) for trace in placed]

    def for_part(self, mod: IRModule) -> WholeEvaluator:
        """Return an evaluator of a part on the same target."""
        return replace(self, inner=evaluator_of_part(self.inner, mod))

    def place_whole(self, trace: Trace) -> Trace:
        """Return a trace extended by the assignment of the program to the target, without a cost.

        It has failed, with the reason, if the program cannot be assigned to it.

        Raises:
            UsageError: A function of the program is assigned to another toolchain already.
        """
        others = {str(marked.target.toolchain) for marked in marked_functions(trace.out_mod)}
        others -= {str(self.target.toolchain)}
        if others:
            raise UsageError(
                f"a pass has given to {' and '.join(sorted(others))} what was to be tried on {self.decision}",
                help="such a pass comes behind the placement, not before it",
            )
        placed = extended(trace.reopened(), self.instruction, self.decision)
        assert placed is not None, "an assignment to a target has no constraint"
        return placed


def innermost_evaluator(evaluator: Evaluator) -> Evaluator:
    """Return the evaluator inside of those that log, or place programs before they evaluate them."""
    while isinstance(evaluator, LoggingEvaluator | WholeEvaluator):
        evaluator = evaluator.inner
    return evaluator


def measuring_evaluator(evaluator: Evaluator) -> MeasuringEvaluator | None:
    """Return the measuring evaluator inside of an evaluator; None if there is none."""
    inner = innermost_evaluator(evaluator)
    return inner if isinstance(inner, MeasuringEvaluator) else None


def whole_target(evaluator: Evaluator) -> Target | None:
    """Return the target of programs that name no toolchain; None if the evaluator has none."""
    while isinstance(evaluator, LoggingEvaluator):
        evaluator = evaluator.inner
    return evaluator.target if isinstance(evaluator, MeasuringEvaluator | WholeEvaluator) else None
