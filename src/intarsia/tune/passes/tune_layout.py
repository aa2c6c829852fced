"""The memory layout of images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from intarsia.passes import ConvertLayout
from intarsia.support.errors import UsageError
from intarsia.transform import register_pass
from intarsia.tune.choice import Choice
from intarsia.tune.instruction import Instruction
from intarsia.tune.trace import Trace
from intarsia.tune.tuning_context import TuningContext
from intarsia.tune.tuning_pass import TuningPass

NONE = "none"
"""The decision to leave layouts as they are."""


@register_pass
@dataclass(frozen=True)
class TuneLayout(TuningPass):
    """Decides on the layout of images: as it is, channels first, or channels last (seed: TuningLayoutPass).

    Raises:
        UsageError: There is no such layout.

    Attributes:
        layouts: "none", "NCHW" and "NHWC", or some of them; of equal candidates the earlier wins.
        operators: Names of the operators to convert; all that have a layout if empty.
    """

    layouts: tuple[str, ...] = (NONE, "NCHW", "NHWC")
    operators: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        object.__setattr__(self, "layouts", tuple(dict.fromkeys(self.layouts)))
        object.__setattr__(self, "operators", tuple(self.operators))
        if not self.layouts:
            raise UsageError("there is no layout to choose", help=f"give some of {NONE}, NCHW, NHWC")
        for layout in self.layouts:
            if layout != NONE:
                ConvertLayout(layout, self.operators)

    def instructions(self, trace: Trace, ctx: TuningContext) -> Sequence[Instruction]:  # noqa: ARG002  # always this
        """The one decision."""
        return [Instruction("ConvertLayout", {layout: self._choice(layout) for layout in self.layouts})]

    def _choice(self, layout: str) -> Choice:
        if layout == NONE:
            return Choice()
        chosen = {"operators": list(self.operators)} if self.operators else {}
        return Choice("ConvertLayout", {"layout": layout, **chosen})
