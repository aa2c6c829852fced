"""Choices of layers to compute in integers, measured as programs and repaired where predictions miss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from intarsia.tune.quantise.output_error import OutputError
from intarsia.tune.quantise.precision_problem import PrecisionProblem, solve_with_repair

ROUNDS: Final = 5
"""Maximum number of programs that are measured for one choice."""


@dataclass(frozen=True, slots=True)
class LayerChoice:
    """Layers in integers, with the measured error of the program.

    Attributes:
        layers: Numbers of the layers.
        error: Error on inputs that were held back.
    """

    layers: frozenset[int]
    error: OutputError


def choose_layers(
    problem: PrecisionProblem,
    budget: float,
    measure: Callable[[frozenset[int]], OutputError],
    is_allowed: Callable[[OutputError], bool],
) -> LayerChoice | None:
    """Return the fastest choice whose measured error is allowed; None if there is none.

    Predictions are scaled by what was measured, and the problem is solved again: with fewer layers where a
    choice misses the budget, with more where it uses little of it. Where the budget is kept, but the error is
    not allowed (by a metric), the budget is halved.

    Args:
        problem: Times and errors of the layers.
        budget: Largest relative error.
        measure: Function that measures the error of a program with some layers in integers.
        is_allowed: Function that returns whether a program with an error may be chosen.
    """
    measured: list[tuple[frozenset[int], float]] = []
    best: LayerChoice | None = None
    for _ in range(ROUNDS):
        layers = solve_with_repair(problem, budget**2, measured)
        if not layers or any(layers == before for before, _ in measured):
            break
        error = measure(layers)
        measured.append((layers, error.relative**2))
        if is_allowed(error):
            if best is None or problem.seconds(layers) < problem.seconds(best.layers):
                best = LayerChoice(layers, error)
        elif error.relative <= budget:
            budget /= 2
    return best
