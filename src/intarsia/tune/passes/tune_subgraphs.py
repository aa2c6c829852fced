"""Tuning of repeated parts: one occurrence is tuned for all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from intarsia.ir import DType, IRModule, TensorType, structural_equal
from intarsia.support.errors import UsageError
from intarsia.transform import Pass, register_pass
from intarsia.tune.choice import Choice
from intarsia.tune.evaluator import evaluator_of_part
from intarsia.tune.extension import after_passes
from intarsia.tune.instruction import Instruction
from intarsia.tune.repeated import RepeatedPart, in_repeated_parts, repeated_parts
from intarsia.tune.repeated.repeated_parts import LEAST_OPERATORS
from intarsia.tune.trace import Trace
from intarsia.tune.transformations import IDENTITY
from intarsia.tune.tuning_context import TuningContext
from intarsia.tune.tuning_pass import TuningPass

AS_IT_IS = "as it is"
TUNED = "tuned"


@register_pass
@dataclass(frozen=True)
class TuneSubgraphs(TuningPass):
    """Tunes one of the equal parts of a program, such as the layers of a transformer, on its own.

    The decisions of its passes on the first occurrence of a part are applied to all. Then the whole program
    is evaluated once, and stays unchanged if it is not faster. Occurrences may differ in the values of
    weights. Parts with integer inputs, which random numbers may not fit, or with unknown shapes are skipped.

    The decision is one choice that contains the decisions on the parts, so that a trace can replay it.

    Attributes:
        passes: Passes on a part; tuning passes among them use the evaluator of the part.
        least_operators: Minimum number of operators of a part.

    Raises:
        UsageError: There is no pass, or parts may be empty.
    """

    passes: tuple[Pass, ...] = field(default=(), kw_only=True)
    least_operators: int = field(default=LEAST_OPERATORS, kw_only=True)

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        object.__setattr__(self, "passes", tuple(self.passes))
        if not self.passes:
            raise UsageError(
                "there is nothing to tune parts with", help="TuneSubgraphs(passes=(TuneLayout(), ...))"
            )
        if self.least_operators < 1:
            raise UsageError(f"least_operators is {self.least_operators}, expected 1 or more")

    def instructions(self, trace: Trace, ctx: TuningContext) -> Sequence[Instruction]:
        """Return one instruction: the unchanged program, or tuned parts."""
        mod, least = trace.out_mod, self.least_operators
        parts = ctx.memo.get_or_make(mod, ("repeated parts", least), lambda: repeated_parts(mod, least))
        decisions_by_digest = {
            part.digest: self._tune_part(part, ctx) for part in parts if _can_be_run(part.module)
        }
        tuned = {digest: decisions for digest, decisions in decisions_by_digest.items() if decisions}
        choices = {AS_IT_IS: Choice()}
        if tuned:
            args = {"parts": tuned, "least_operators": self.least_operators}
            choices[TUNED] = Choice(in_repeated_parts, args)
        return [Instruction("repeated parts", choices)]

    def _tune_part(self, part: RepeatedPart, ctx: TuningContext) -> list[dict[str, Any]]:
        """Tune a part, and return its choices in the form of `Choice.to_json`; none if it stays unchanged."""
        mod = part.module
        node = ctx.node.add(f"{len(part.occurrences)} parts of {part.operators} operators")
        inner = ctx.recording(Trace(mod), node)
        inner.evaluator = evaluator_of_part(ctx.evaluator, mod)
        node.trace = after_passes(self.passes, Trace(mod), inner)
        if node.trace.has_failed or structural_equal(node.trace.out_mod, mod):
            return []
        choices = (step.instruction.choice(step.decision) for step in node.trace.steps)
        return [choice.to_json() for choice in choices if choice.transform != IDENTITY]


def _can_be_run(mod: IRModule) -> bool:
    """Whether any numbers are a fair input of each parameter."""
    return all(
        isinstance(type_ := param.checked_type, TensorType)
        and type_.is_static
        and (type_.dtype.is_float or type_.dtype is DType.BOOL)
        for param in mod["main"].params
    )
