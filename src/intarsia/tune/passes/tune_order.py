"""The order of heuristic passes."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import permutations
from typing import Any, Final

from intarsia.ir import IRModule
from intarsia.support.errors import UsageError
from intarsia.transform import Pass, register_pass
from intarsia.tune.choice import Choice
from intarsia.tune.heuristic_pass import heuristic_passes
from intarsia.tune.instruction import Instruction
from intarsia.tune.trace import Trace
from intarsia.tune.transformations import transformation
from intarsia.tune.tuning_context import TuningContext
from intarsia.tune.tuning_pass import TuningPass

MOST: Final = 6
"""Maximum number of passes: 6! = 720 orders."""


@transformation
def in_order(mod: IRModule, passes: list[dict[str, Any]]) -> IRModule:
    """Apply passes in order, each in the form of `Choice.to_json`."""
    for item in passes:
        mod = Choice.from_json(item).apply(mod)
    return mod


@register_pass
@dataclass(frozen=True)
class TuneOrder(TuningPass, opt_level=0):
    """Decides the order of heuristic passes: one instruction with a choice for each order.

    The order that is given is the first choice, and wins ties. Orders that lead to the same program share
    its measurement.

    Attributes:
        passes: The passes.

    Raises:
        UsageError: There is none or more than MOST, or one is a sequence or a tuning pass.
    """

    passes: tuple[Pass, ...] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        """Check the passes."""
        super().__post_init__()
        object.__setattr__(self, "passes", tuple(self.passes))
        heuristic_passes(self.passes)
        if len(self.passes) > MOST:
            raise UsageError(
                f"{len(self.passes)} passes have too many orders; expected at most {MOST}",
                help="order groups of them",
            )

    def instructions(self, trace: Trace, ctx: TuningContext) -> list[Instruction]:  # noqa: ARG002  # of all passes
        """Return one instruction with a choice for each order."""
        choices = {
            " ".join(item.name for item in order): Choice(
                in_order, {"passes": [item.choice.to_json() for item in order]}
            )
            for order in permutations(heuristic_passes(self.passes))
        }
        return [Instruction("order", choices)]
