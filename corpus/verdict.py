"""What became of one model, and what of it is a problem."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from corpus.check_model import MIXED, TOOLCHAINS
from corpus.recipe import Recipe

_OURS: Final = {"right", "refused", "skipped"}

_QUANTISED: Final = re.compile(r"[Qq]uantize|QLinear|Integer|MatMulNBits|QAttention|QEmbed|QGemm")
"""Operators of models that are no models of floats: weights behind DequantizeLinear are quantised, too."""

LEAST_NATIVE_PERCENT: Final = 95
"""Percentage of the models of floats that native must run whole, or whole but for opaque operators."""


@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """The outcomes of a model's steps.

    Attributes:
        recipe: The recipe of the model.
        record: What the cache knows of the file: opset, operators, size.
        outcomes: By step: its status, and a message where it is not right.
        seconds: Wall time by step, for the table of times.
    """

    recipe: Recipe
    record: Mapping[str, Any]
    outcomes: Mapping[str, Mapping[str, Any]]
    seconds: Mapping[str, float] = field(default_factory=dict)

    def status(self, step: str) -> str:
        """Return the status of a step; "missing" if it was not reached."""
        return str(self.outcomes.get(step, {}).get("status", "missing"))

    @property
    def served_by(self) -> tuple[str, ...]:
        """The toolchains that run the whole model right."""
        return tuple(name for name in TOOLCHAINS if self.status(name) == "right")

    @property
    def is_float(self) -> bool:
        """Whether a model computes floats: no operator is quantised, no text goes in or out."""
        operators = self.record.get("operators", {})
        return not self.record.get("texts") and not any(map(_QUANTISED.search, operators))

    @property
    def native_whole(self) -> bool:
        """Whether native runs the whole model right, or all of it but opaque operators.

        The interpreter may branch, repeat, and store values in sequences and optionals.
        """
        cover = self.outcomes.get("cover", {})
        if self.status("native") == "right":
            return bool(cover.get("whole"))
        return bool(cover.get("opaque")) and self.status(MIXED) == "right"

    @property
    def problems(self) -> tuple[str, ...]:
        """What must not be, in words."""
        if "build" in self.outcomes:
            return (f"its recipe fails: {self.outcomes['build']['message']}",)
        found = []
        runs = self.status("expected") == "right"
        for step, outcome in self.outcomes.items():
            if step == "expected":
                continue
            bad = outcome["status"] not in _OURS
            if step in {"import", "judge"} or step.endswith(" artifact"):
                bad = bad or outcome["status"] == "refused"
            if bad and (runs or outcome["status"] in {"foreign", "crashed"}):
                found.append(f"{step} is {outcome['status']}: {outcome.get('message', '')}".strip())
        if runs and not self.served_by and not found:
            found.append("no toolchain runs the whole of it")
        return tuple(found)

    def line(self) -> str:
        """Return one line for the terminal."""
        steps = ", ".join(f"{name} {self.status(name)}" for name in ("import", *TOOLCHAINS, MIXED))
        return f"{self.recipe.name}: {steps}, {sum(self.seconds.values()):.1f} s" + (
            f"  [{len(self.problems)} problems]" if self.problems else ""
        )


def native_share(verdicts: Sequence[Verdict]) -> tuple[int, int]:
    """Return how many models of floats native runs whole, and how many there are."""
    floats = [verdict for verdict in verdicts if verdict.is_float]
    return sum(verdict.native_whole for verdict in floats), len(floats)


def share_problems(verdicts: Sequence[Verdict]) -> tuple[str, ...]:
    """Return what is wrong with all models together, in words."""
    whole, total = native_share(verdicts)
    if 100 * whole >= LEAST_NATIVE_PERCENT * total:
        return ()
    missing = [verdict.recipe.name for verdict in verdicts if verdict.is_float and not verdict.native_whole]
    return (
        f"native runs {whole} of {total} models of floats whole, expected {LEAST_NATIVE_PERCENT} %; "
        f"not whole: {', '.join(missing)}",
    )
