"""Whether parallel convolutions and matrix products are combined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from intarsia.support.errors import UsageError
from intarsia.transform import register_pass
from intarsia.tune.choice import Choice
from intarsia.tune.cost_model import CostModel
from intarsia.tune.instruction import Instruction
from intarsia.tune.passes.rewrite_estimate import estimated_cost
from intarsia.tune.trace import Trace
from intarsia.tune.tuning_context import TuningContext
from intarsia.tune.tuning_pass import TuningPass


@register_pass
@dataclass(frozen=True)
class TuneCombineParallel(TuningPass):
    """Decides whether parallel convolutions are combined, and whether parallel matrix products are.

    Each is a decision of its own: off, or on from so many branches (seed relax_pass_infra,
    TuningParallelConv2d and TuningParallelMatmul). What is off stands first: of equal candidates it wins.

    Raises:
        UsageError: Neither is to be decided, or a number of branches is below 2.

    Attributes:
        convolutions: Whether convolutions are decided on.
        matmuls: Whether matrix products are.
        min_num_branches: Numbers of branches from which they may be combined.
    """

    convolutions: bool = True
    matmuls: bool = True
    min_num_branches: tuple[int, ...] = (2, 3)

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        object.__setattr__(self, "min_num_branches", tuple(dict.fromkeys(self.min_num_branches)))
        if not (self.convolutions or self.matmuls) or not self.min_num_branches:
            raise UsageError("there is nothing to combine", help="leave convolutions or matmuls on")
        if min(self.min_num_branches) < 2:
            raise UsageError(f"min_num_branches has {min(self.min_num_branches)}, expected 2 or more")

    def instructions(self, trace: Trace, ctx: TuningContext) -> Sequence[Instruction]:  # noqa: ARG002  # always these
        """The one or two decisions."""
        wanted = {"CombineParallelConv2D": self.convolutions, "CombineParallelMatMul": self.matmuls}
        return [self._decision(name) for name, is_wanted in wanted.items() if is_wanted]

    def cost_model(self) -> CostModel:
        """The estimate from operation counts: fewer, larger operators come first."""
        return lambda trace: estimated_cost(trace.out_mod)

    def _decision(self, name: str) -> Instruction:
        combined = {
            f"On({least})": Choice(name, {"min_num_branches": least}) for least in self.min_num_branches
        }
        return Instruction(name, {"Off": Choice(), **combined})
