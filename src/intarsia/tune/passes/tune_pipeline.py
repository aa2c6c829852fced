"""The choice among named sequences of heuristic passes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from intarsia.ir import IRModule
from intarsia.support.errors import UsageError
from intarsia.transform import load_pass_sequence, register_pass
from intarsia.tune.choice import Choice
from intarsia.tune.instruction import Instruction
from intarsia.tune.trace import Trace
from intarsia.tune.transformations import transformation
from intarsia.tune.tuning_context import TuningContext
from intarsia.tune.tuning_pass import TuningPass

NONE = "none"
"""The decision to run no sequence."""


@transformation
def pipeline(mod: IRModule, name: str) -> IRModule:
    """Run the sequence of a name, such as "default_heuristic", on a module."""
    return load_pass_sequence(name)(mod)


@register_pass
@dataclass(frozen=True)
class TunePipeline(TuningPass, opt_level=0):
    """Decides which named sequence of heuristic passes runs: an engine may do as well or better by itself.

    Attributes:
        pipelines: "none" and names of sequences; of equal candidates the earlier wins.

    Raises:
        UsageError: There is no choice, or no sequence of a name.
    """

    pipelines: tuple[str, ...] = (NONE, "default_heuristic")

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        object.__setattr__(self, "pipelines", tuple(dict.fromkeys(self.pipelines)))
        if not self.pipelines:
            raise UsageError("there is no sequence to choose", help=f"give {NONE}, or names of sequences")
        for name in self.pipelines:
            if name != NONE:
                load_pass_sequence(name)

    def instructions(self, trace: Trace, ctx: TuningContext) -> Sequence[Instruction]:  # noqa: ARG002  # always this
        """The one decision."""
        choices = {
            name: Choice() if name == NONE else Choice(pipeline, {"name": name}) for name in self.pipelines
        }
        return [Instruction("pipeline", choices)]
