"""The base of the passes that decide on native's kernels."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from intarsia.tune.choice import Choice
from intarsia.tune.evaluator import target_of
from intarsia.tune.instruction import Instruction
from intarsia.tune.kernels.kernel_group import KernelGroup, kernel_groups
from intarsia.tune.kernels.kernel_question import AS_IT_IS, KernelQuestion
from intarsia.tune.kernels.timed_questions import (
    DEFAULT_LIMITS,
    LEAST_SHARE,
    QuestionLimits,
    TimedQuestions,
    timed_questions,
)
from intarsia.tune.strategy import Prefixes, Strategy
from intarsia.tune.trace import Trace
from intarsia.tune.tuning_context import TuningContext
from intarsia.tune.tuning_pass import TuningPass


@dataclass(frozen=True)
class TuneKernels(TuningPass):
    """Decides on single kernels of native, where the times of kernels show that it can pay.

    Equal layers are decided together. Native's rule is the first choice of each. A subclass defines the
    questions; kernels are timed within the program with all of their choices (`timed_questions`), and the
    best choices are then tried on the whole program together.

    Attributes:
        target: Target of the whole program if it assigns no function to a toolchain; the evaluator's target
            if empty.
    """

    strategy: Strategy = field(default_factory=Prefixes, kw_only=True)
    target: str = field(default="", kw_only=True)

    @abstractmethod
    def questions(self, groups: Sequence[KernelGroup], target: str) -> list[KernelQuestion]:
        """Return what can be decided about the groups of a program.

        Args:
            groups: Groups, those with most work first.
            target: Target of the whole program if it assigns no function to a toolchain.
        """

    def instructions(self, trace: Trace, ctx: TuningContext) -> list[Instruction]:
        """Return an instruction for each question that can pay, or one without a choice."""
        target = self.target or target_of(ctx.evaluator)
        timed = time_questions(self.questions, target, trace, ctx)
        return list(timed.instructions) or [Instruction(self.info.name, {AS_IT_IS: Choice()})]


def time_questions(
    ask: Callable[[Sequence[KernelGroup], str], list[KernelQuestion]],
    target: str,
    trace: Trace,
    ctx: TuningContext,
    limits: QuestionLimits = DEFAULT_LIMITS,
) -> TimedQuestions:
    """Return the questions that can pay; the tuning tree says how many cannot.

    Kernels are timed once for each program.

    Args:
        ask: Function from the groups of a program and a target to the questions.
        target: Target of the whole program if it assigns no function to a toolchain; "" for none.
        trace: Trace that ends with the program.
        ctx: Context of the pass.
        limits: Limits on the number of timed choices.
    """
    mod = trace.out_mod
    groups = ctx.memo.get_or_make(mod, ("kernel groups", target), lambda: kernel_groups(mod, target))
    questions = ask(groups, target)
    asked = tuple((question.name, *question.choices) for question in questions)
    timed = ctx.memo.get_or_make(
        mod,
        ("kernel questions", target, asked, limits),
        lambda: timed_questions(questions, groups, trace, ctx, limits),
    )
    if timed.skipped:
        reason = f"share of the time x possible gain below {LEAST_SHARE:.0%}, or not among the first"
        ctx.node.add(f"not tried: {timed.skipped} decisions, {reason} {limits.questions}")
    if timed.foreseen:
        reason = "which saved too little on similar kernels of other models"
        ctx.node.add(f"not tried: {timed.foreseen} choices, {reason}")
    if timed.failed:
        ctx.node.add(f"failed: {', '.join(timed.failed)}")
    return timed
