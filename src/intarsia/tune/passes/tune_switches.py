"""The choice whether heuristic passes run."""

from __future__ import annotations

from dataclasses import dataclass, field

from intarsia.transform import Pass, register_pass
from intarsia.tune.heuristic_pass import heuristic_passes
from intarsia.tune.instruction import Instruction
from intarsia.tune.trace import Trace
from intarsia.tune.tuning_context import TuningContext
from intarsia.tune.tuning_pass import TuningPass


@register_pass
@dataclass(frozen=True)
class TuneSwitches(TuningPass, opt_level=0):
    """Decides of each of some heuristic passes whether it runs, in their order; off wins ties.

    The default strategy tries all combinations: 2 to the power of the number of passes.

    Attributes:
        passes: The passes.

    Raises:
        UsageError: There is none, or one is a sequence or a tuning pass.
    """

    passes: tuple[Pass, ...] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        """Check the passes."""
        super().__post_init__()
        object.__setattr__(self, "passes", tuple(self.passes))
        heuristic_passes(self.passes)

    def instructions(self, trace: Trace, ctx: TuningContext) -> list[Instruction]:  # noqa: ARG002  # of all passes
        """Return an instruction for each pass."""
        return [each.switch for each in heuristic_passes(self.passes)]
