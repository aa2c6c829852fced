"""What a program costs as a whole on a target, and on which target that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from intarsia.ir import IRModule
from intarsia.support.errors import UsageError
from intarsia.target import Target
from intarsia.tune.evaluation_log import LoggingEvaluator
from intarsia.tune.evaluator import Evaluation, Evaluator, evaluator_of_part
from intarsia.tune.instruction import Instruction
from intarsia.tune.measuring_evaluator import MeasuringEvaluator
from intarsia.tune.target_options import marked_functions
from intarsia.tune.trace import Trace


@dataclass(frozen=True, eq=False)
class WholeEvaluator:
    """Asks another evaluator what programs cost when all of them is given to one target.

    So passes that leave alone what is a toolchain's decide for that toolchain, before it gets the program.

    Attributes:
        inner: Who knows.
        target: Of a toolchain.
        instruction: What gives the program away.
        decision: Its choice for the target.
    """

    inner: Evaluator
    target: Target
    instruction: Instruction
    decision: str

    def evaluate(self, candidates: Sequence[Trace]) -> Sequence[Evaluation]:
        """What each costs on the target, in order.

        Raises:
            UsageError: A candidate has given something to another toolchain.
        """
        return self.inner.evaluate([self.place_whole(each) for each in candidates])

    def for_part(self, mod: IRModule) -> WholeEvaluator:
        """One for a part, which is given to the same target."""
        return replace(self, inner=evaluator_of_part(self.inner, mod))

    def place_whole(self, trace: Trace) -> Trace:
        """A trace that goes on with the program given to the target; what it costs is not known.

        Raises:
            UsageError: Something of the program is given to another toolchain already.
        """
        others = {str(each.target.toolchain) for each in marked_functions(trace.out_mod)}
        others -= {str(self.target.toolchain)}
        if others:
            raise UsageError(
                f"a pass has given to {' and '.join(sorted(others))} what was to be tried on {self.decision}",
                help="such a pass comes behind the placement, not before it",
            )
        placed = trace.copy()
        placed.add(self.instruction, self.decision)
        return placed


def measuring_evaluator(evaluator: Evaluator) -> MeasuringEvaluator | None:
    """The evaluator that measures behind the one that is asked; None if nobody measures."""
    while isinstance(evaluator, LoggingEvaluator | WholeEvaluator):
        evaluator = evaluator.inner
    return evaluator if isinstance(evaluator, MeasuringEvaluator) else None


def whole_target(evaluator: Evaluator) -> Target | None:
    """The target that an evaluator gives programs to which name no toolchain; None if it does not say."""
    while isinstance(evaluator, LoggingEvaluator):
        evaluator = evaluator.inner
    return evaluator.target if isinstance(evaluator, MeasuringEvaluator | WholeEvaluator) else None
