"""All decisions on native's kernels as one, timed together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Final

from intarsia.support.errors import UsageError
from intarsia.transform import Pass, register_pass
from intarsia.tune.choice import Choice
from intarsia.tune.evaluator import target_of
from intarsia.tune.instruction import Instruction
from intarsia.tune.kernels import AS_IT_IS, KernelGroup, KernelQuestion, TuneKernels
from intarsia.tune.kernels.timed_questions import QuestionLimits
from intarsia.tune.kernels.tune_kernels import time_questions
from intarsia.tune.passes.tune_channel_blocks import TuneChannelBlocks
from intarsia.tune.passes.tune_convolution_forms import TuneConvolutionForms
from intarsia.tune.passes.tune_convolutions import TuneConvolutions
from intarsia.tune.passes.tune_fusion_borders import TuneFusionBorders
from intarsia.tune.passes.tune_fusion_merges import TuneFusionMerges
from intarsia.tune.passes.tune_kernel_threads import TuneKernelThreads
from intarsia.tune.passes.tune_packing import TunePacking
from intarsia.tune.strategy import Prefixes, Strategy
from intarsia.tune.trace import Trace
from intarsia.tune.tuning_context import TuningContext
from intarsia.tune.tuning_pass import TuningPass, search_decisions

KERNEL_PASSES: Final[tuple[TuneKernels, ...]] = (
    TuneConvolutions(),
    TuneFusionMerges(),
    TuneConvolutionForms(),
    TuneChannelBlocks(),
    TunePacking(),
    TuneKernelThreads(),
    TuneFusionBorders(),
)
"""The passes that decide on kernels of native."""

_MOST_QUESTIONS: Final = 32
"""Maximum number of questions whose kernels are compiled in a round: twice as many or more than those of one
pass, as most of their choices share a build."""

_MOST_VARIANTS: Final = 6
"""Maximum number of programs of the second round: what is expected of a kernel's seventh choice is little."""

_ROUNDS: Final = (1, _MOST_VARIANTS)
"""Number of programs in each round."""


@register_pass
@dataclass(frozen=True)
class TuneKernelsJointly(TuningPass, opt_level=0):
    """Decides what its passes decide on native's kernels, all together.

    In the first round one program is built, in which each kernel has the choice that is expected to save
    most: by the roofline, and by what it saved on similar kernels of other models. The kernels are timed in
    it and in the program as it is, and those that are faster are tried on the whole program. The second
    round does the same with the other choices, on the program that the first one has found. So the answer of
    the likely choices takes one build, and not one for each pass.

    The limits hold for each round.

    Attributes:
        passes: Passes that ask about kernels.
        target: Target of the whole program if it assigns no function to a toolchain; the evaluator's target
            if empty.

    Raises:
        UsageError: There is no pass, or one that does not decide on kernels.
    """

    strategy: Strategy = field(default_factory=Prefixes, kw_only=True)
    passes: tuple[Pass, ...] = field(default=KERNEL_PASSES, kw_only=True)
    target: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        object.__setattr__(self, "passes", tuple(self.passes))
        usable = f"passes on kernels: {', '.join(item.info.name for item in KERNEL_PASSES)}"
        if not self.passes:
            raise UsageError("there is no pass on kernels", help=usable)
        for item in self.passes:
            if not isinstance(item, TuneKernels):
                raise UsageError(f"{item.info.name} does not decide on kernels", help=usable)

    def tune(self, trace: Trace, ctx: TuningContext) -> Trace:
        """Search the best choices of kernels, the likely ones first."""
        best, timed, seconds_each = trace, frozenset[tuple[str, str]](), 0.0
        target = self.target or target_of(ctx.evaluator)
        for number, most in enumerate(_ROUNDS):
            variants = min(most, _affordable(ctx, seconds_each)) if number else most
            if variants < 1:
                ctx.control.skip("further choices of kernels", "too little time is left to build programs")
                break
            ctx.control.renew()  # the other choices may gain where the likeliest ones do not
            begun, limits = ctx.control.spent, QuestionLimits(_MOST_QUESTIONS, variants, timed)
            answers = time_questions(self._questions, target, best, ctx, limits)
            seconds_each = (
                ctx.control.spent - begun
            ) / 2  # the program as it is, and with the likeliest choices
            if answers.instructions:
                best = self._search(answers.instructions, best, ctx)
            elif not number:
                # The program as it is needs a cost: it is what the pass returns where nothing pays.
                best = self._search([Instruction(self.info.name, {AS_IT_IS: Choice()})], best, ctx)
            timed |= answers.timed
            if not answers.timed or ctx.control.is_over or best.has_failed:
                break
        return best

    def _search(self, instructions: Sequence[Instruction], trace: Trace, ctx: TuningContext) -> Trace:
        """Return the best extension of a trace; the trace itself if it has a cost and none costs less."""
        tuned = search_decisions(
            instructions, trace.reopened(), ctx, self.eval_passes, self.strategy, self.limits, None
        )
        return trace if trace.steps and trace.cost <= tuned.cost else tuned

    def _questions(self, groups: Sequence[KernelGroup], target: str) -> list[KernelQuestion]:
        return [
            question
            for item in self.passes
            if isinstance(item, TuneKernels)
            for question in item.questions(groups, target)
        ]


def _affordable(ctx: TuningContext, seconds_each: float) -> float:
    """Return how many programs can be built and timed beside the one as it is, and one be tried after them.

    Args:
        ctx: Context of the pass.
        seconds_each: Seconds for each program.
    """
    return ctx.control.budget_left // seconds_each - 2 if seconds_each else inf
