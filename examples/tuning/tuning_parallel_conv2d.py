"""A switch: combine parallel convolutions or leave them (seed relax_pass_infra, TuningParallelConv2dPass)."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.tune import Choice, Instruction, Trace, TuningContext, TuningPass


@dataclass(frozen=True)
class TuningParallelConv2d(TuningPass):
    """Try the program with and without combined parallel convolutions."""

    def instructions(self, trace: Trace, ctx: TuningContext) -> list[Instruction]:
        """Return a choice of on or off."""
        choices = {"On": Choice("CombineParallelConv2D", {"min_num_branches": 2}), "Off": Choice()}
        return [Instruction("TuningParallelConv2d", choices)]
