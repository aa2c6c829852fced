"""A choice among layouts (seed relax_pass_infra, TuningLayoutPass)."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.tune import Choice, Instruction, Trace, TuningContext, TuningPass


@dataclass(frozen=True)
class TuningLayout(TuningPass):
    """Try two layouts and the unchanged program."""

    def instructions(self, trace: Trace, ctx: TuningContext) -> list[Instruction]:
        """Return a choice of channels last, channels first, or no change."""
        layouts = {name: Choice("ConvertLayout", {"layout": name}) for name in ("NHWC", "NCHW")}
        return [Instruction("TuningLayout", {**layouts, "NoApply": Choice()})]
