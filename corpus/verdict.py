"""The verdict on one model, and its problems."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from corpus.check_model import MIXED, TOOLCHAINS
from corpus.recipe import Recipe

_EXPECTED_STATUSES: Final = {"right", "refused", "skipped"}

_QUANTISED: Final = re.compile(r"[Qq]uantize|QLinear|Integer|MatMulNBits|QAttention|QEmbed|QGemm")
"""Operators of models that are not float models; DequantizeLinear of weights counts too."""

LEAST_NATIVE_PERCENT: Final = 95
"""Percentage of the float models that native must run whole, opaque operators excepted."""


def computes_floats(record: Mapping[str, Any]) -> bool:
    """Return whether a model computes floats: no operator is quantised, no text goes in or out."""
    return not record.get("texts") and not any(map(_QUANTISED.search, record.get("operators", {})))


@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """The outcomes of a model's steps.

    Attributes:
        recipe: Recipe of the model.
        record: Record of the file in the cache: opset, operators, size.
        outcomes: Status of each step, with a message if it is not right.
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
        """The toolchains that run the whole model with the right result."""
        return tuple(name for name in TOOLCHAINS if self.status(name) == "right")

    @property
    def is_float(self) -> bool:
        """Whether a model computes floats."""
        return computes_floats(self.record)

    @property
    def native_whole(self) -> bool:
        """Whether native runs the whole model, opaque operators excepted, with the right result.

        The interpreter may run control flow, sequences and optionals.
        """
        cover = self.outcomes.get("cover", {})
        if self.status("native") == "right":
            return bool(cover.get("whole"))
        return bool(cover.get("opaque")) and self.status(MIXED) == "right"

    @property
    def problems(self) -> tuple[str, ...]:
        """Descriptions of the problems of the model."""
        if "build" in self.outcomes:
            return (f"its recipe fails: {self.outcomes['build']['message']}",)
        problems = []
        runs = self.status("expected") == "right"
        for step, outcome in self.outcomes.items():
            if step == "expected":
                continue
            is_bad = outcome["status"] not in _EXPECTED_STATUSES
            if step in {"import", "judge"} or step.endswith(" artifact"):
                is_bad = is_bad or outcome["status"] == "refused"
            if is_bad and (runs or outcome["status"] in {"foreign", "crashed"}):
                problems.append(f"{step} is {outcome['status']}: {outcome.get('message', '')}".strip())
        if runs and not self.served_by and not problems:
            problems.append("no toolchain runs the whole of it")
        return tuple(problems)

    def line(self) -> str:
        """Return one line for the terminal."""
        steps = ", ".join(f"{name} {self.status(name)}" for name in ("import", *TOOLCHAINS, MIXED))
        return f"{self.recipe.name}: {steps}, {sum(self.seconds.values()):.1f} s" + (
            f"  [{len(self.problems)} problems]" if self.problems else ""
        )


def native_share(verdicts: Sequence[Verdict]) -> tuple[int, int]:
    """Return the number of float models that native runs whole, and of all float models."""
    floats = [verdict for verdict in verdicts if verdict.is_float]
    return sum(verdict.native_whole for verdict in floats), len(floats)


def share_problems(verdicts: Sequence[Verdict]) -> tuple[str, ...]:
    """Return the problem that native runs too few float models whole, if it does."""
    whole, total = native_share(verdicts)
    if 100 * whole >= LEAST_NATIVE_PERCENT * total:
        return ()
    missing = [verdict.recipe.name for verdict in verdicts if verdict.is_float and not verdict.native_whole]
    return (
        f"native runs {whole} of {total} models of floats whole, expected {LEAST_NATIVE_PERCENT} %; "
        f"not whole: {', '.join(missing)}",
    )
