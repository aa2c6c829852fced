"""Rewrites before quantisation that compute the same bits, and make the error in integers smaller."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from intarsia.ir import IRModule
from intarsia.passes import EqualizeLayers
from intarsia.tune.quantise.observation import InputSets
from intarsia.tune.quantise.smooth_activations import SmoothActivations, smoothing_exponents, smoothing_record


@dataclass(frozen=True, slots=True)
class Rewrites:
    """Rewrites of a simplified program before it is annotated.

    Attributes:
        equalizes: Whether layers are equalised.
        smoothing: Record of smoothed activations; "" for none.
    """

    equalizes: bool = False
    smoothing: str = ""

    def apply(self, mod: IRModule) -> IRModule:
        """Return the program after the rewrites.

        Raises:
            UsageError: The record is of another program.
        """
        equalized = EqualizeLayers()(mod) if self.equalizes else mod
        return SmoothActivations(record=self.smoothing)(equalized) if self.smoothing else equalized

    @property
    def arguments(self) -> dict[str, Any]:
        """The rewrites as arguments of the transformation `quantised`, without those that are off."""
        switch = {"equalizes": True} if self.equalizes else {}
        return {**switch, **({"smoothing": self.smoothing} if self.smoothing else {})}

    @property
    def description(self) -> str:
        """The rewrites in words; "" for none."""
        words = [*(["layers equalised"] if self.equalizes else [])]
        return ", ".join([*words, *(["activations smoothed"] if self.smoothing else [])])


def possible_rewrites(mod: IRModule, inputs: InputSets) -> tuple[Rewrites, ...]:
    """Return the rewrites that change a program, each alone.

    Args:
        mod: Program after `simplified_program`.
        inputs: Calibration inputs, on which activations are smoothed.

    Raises:
        ExecutionError: No toolchain runs the program.
    """
    rewrites = [Rewrites(equalizes=True)] if EqualizeLayers()(mod) is not mod else []
    exponents = smoothing_exponents(mod, inputs)
    return (*rewrites, *([Rewrites(smoothing=smoothing_record(exponents))] if exponents else []))
