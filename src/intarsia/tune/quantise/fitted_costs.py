"""Costs of layers that agree with what was measured of whole programs.

A layer that is timed alone pays for what it shares with its neighbours in a program: layouts, quantised
arguments, the call. So times of layers are no more than an expectation. The time of a program is linear in
them, and each measured program corrects them by Bayesian linear regression: errors that all layers of a type
share are the most likely ones, then errors of single layers, of conversions, and of what a call costs.
Errors of outputs are corrected likewise. A draw of the posterior, in place of its mean, is what else may be
true: a choice that is best for a draw is worth measuring (Thompson sampling).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from intarsia.tune.quantise.layer_types import LayerTypes
from intarsia.tune.quantise.precision_problem import (
    BFLOAT16,
    INT8,
    WIDE,
    Border,
    LayerCost,
    PrecisionProblem,
    types_of,
)

Array = npt.NDArray[Any]

_TYPES: Final = (WIDE, INT8, BFLOAT16)
_PAIRS: Final = tuple(combinations(_TYPES, 2))

_SHARED_TIME: Final = 0.5
"""Standard deviation of the factor by which times of all layers of a type are wrong."""
_OWN_TIME: Final = 0.3
"""The same of a single layer: layers of 10 to 100 us differ so much alone and in a program."""
_CONVERSION: Final = 1.0
"""The same of conversions: many are part of a kernel, and free."""
_CALL: Final = 0.3
"""Standard deviation of the time outside of all layers, as a fraction of the program's in float32."""
_SHARED_ERROR, _OWN_ERROR = 1.0, 0.5
"""The same of mean squared errors, which in deep networks add up to a third of their sum."""

_TIME_NOISE: Final = 0.02
_ERROR_NOISE: Final = 0.05
"""Standard deviations of what is measured, as fractions."""

_LEAST: Final = 0.02
"""Least factor of a corrected cost: no layer is free."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Programs that were measured.

    Attributes:
        seconds: Types of layers, with the time of the program.
        errors: Types of layers, with the mean squared error of the program.
        budget: Mean squared error that matters; programs with far larger ones say little of smaller ones.
    """

    seconds: tuple[tuple[LayerTypes, float], ...] = ()
    errors: tuple[tuple[LayerTypes, float], ...] = ()
    budget: float = math.inf


def fitted(
    problem: PrecisionProblem, measured: Measured, random: np.random.Generator | None = None
) -> PrecisionProblem:
    """Return a problem with costs corrected by measured programs.

    Cubic in the number of programs, and linear in the layers.

    Args:
        problem: Costs of layers alone.
        measured: Times and errors of programs; times that are not finite are left out.
        random: Generator for a draw of the times in place of the expected ones.
    """
    times, errors = _times(problem), _errors(problem)
    time_factors, border_factors = _time_factors(problem, times, measured, random)
    error_factors = _error_factors(errors, measured)
    new_times, new_errors = times * time_factors, errors * error_factors
    layers = tuple(
        LayerCost(
            float(new_times[number, WIDE]),
            float(new_times[number, INT8]),
            float(new_errors[number, INT8]),
            float(new_times[number, BFLOAT16]) if layer.bfloat16 < math.inf else math.inf,
            float(new_errors[number, BFLOAT16]),
        )
        for number, layer in enumerate(problem.layers)
    )
    factors = dict(zip(_PAIRS, map(float, border_factors), strict=True))
    borders = tuple(
        Border(
            border.first,
            border.second,
            *(
                border.cost(*pair) * factors[pair]
                for pair in ((WIDE, INT8), (WIDE, BFLOAT16), (INT8, BFLOAT16))
            ),
        )
        for border in problem.borders
    )
    return PrecisionProblem(layers, borders)


def _times(problem: PrecisionProblem) -> Array:
    """Return times of layers (layers, types); 0 for a type that is no choice."""
    rows = [(layer.wide, layer.narrow, layer.bfloat16) for layer in problem.layers]
    array = np.array(rows, np.float64).reshape(-1, len(_TYPES))
    return np.where(np.isfinite(array), array, 0.0)


def _errors(problem: PrecisionProblem) -> Array:
    rows = [(0.0, layer.error, layer.bfloat16_error) for layer in problem.layers]
    return np.array(rows, np.float64).reshape(-1, len(_TYPES))


def _time_factors(
    problem: PrecisionProblem, times: Array, measured: Measured, random: np.random.Generator | None
) -> tuple[Array, Array]:
    """Return the factors of the times (layers, types), and those of the conversions by pair of types."""
    count = len(times)
    seen = [(types, seconds) for types, seconds in measured.seconds if math.isfinite(seconds)]
    rows = np.array([_time_row(problem, times, types) for types, _ in seen])
    values = np.array([seconds for _, seconds in seen])
    predicted = np.array([problem.seconds(types) for types, _ in seen])
    total = float(times[:, WIDE].sum())
    deviations = np.concatenate(
        [
            np.full(len(_TYPES), _SHARED_TIME),
            np.full(times.size, _OWN_TIME),
            np.full(len(_PAIRS), _CONVERSION),
            [_CALL * total],
        ]
    )
    factors = _posterior(rows, values - predicted, deviations, _TIME_NOISE * values, random)
    shared, rest = factors[: len(_TYPES)], factors[len(_TYPES) :]
    single, conversions = rest[: times.size].reshape(count, -1), rest[times.size : times.size + len(_PAIRS)]
    return np.maximum(_LEAST, 1 + shared + single), np.maximum(0.0, 1 + conversions)


def _time_row(problem: PrecisionProblem, times: Array, chosen: LayerTypes) -> Array:
    types = types_of(chosen, len(times))
    used = _used(times, types)
    crossed = np.zeros(len(_PAIRS))
    for border in problem.borders:
        pair = tuple(sorted((types[border.first], types[border.second])))
        if pair in _PAIRS:
            crossed[_PAIRS.index(pair)] += border.cost(*pair)
    return np.concatenate([used.sum(axis=0), used.reshape(-1), crossed, [1.0]])


def _used(costs: Array, types: Sequence[int]) -> Array:
    """Return the costs of the types that layers have, and 0 for the others."""
    used = np.zeros_like(costs)
    numbers = np.arange(len(costs))
    used[numbers, list(types)] = costs[numbers, list(types)]
    return used


def _error_factors(errors: Array, measured: Measured) -> Array:
    count = len(errors)
    seen = [(types, error) for types, error in measured.errors if math.isfinite(error)]
    used = [_used(errors, types_of(types, count)) for types, _ in seen]
    rows = np.array([np.concatenate([part.sum(axis=0), part.reshape(-1)]) for part in used])
    values = np.array([error for _, error in seen])
    predicted = np.array([float(part.sum()) for part in used])
    # Errors do not add up over a wide range: programs far beyond the budget say little.
    beyond = np.maximum(0.0, values - 2 * measured.budget) if measured.budget < math.inf else 0.0
    noise = _ERROR_NOISE * values + 0.5 * beyond
    deviations = np.concatenate([np.full(len(_TYPES), _SHARED_ERROR), np.full(errors.size, _OWN_ERROR)])
    factors = _posterior(rows, values - predicted, deviations, noise, None)
    shared, single = factors[: len(_TYPES)], factors[len(_TYPES) :].reshape(count, -1)
    return np.asarray(np.maximum(_LEAST, 1 + shared + single))


def _posterior(
    rows: Array, rest: Array, deviations: Array, noise: Array, random: np.random.Generator | None
) -> Array:
    """Return the mean of the parameters of a linear model after observations, or a draw of them.

    Args:
        rows: Factors of the parameters in each observation.
        rest: Difference of each observation from the prior mean.
        deviations: Standard deviations of the parameters, whose prior mean is 0.
        noise: Standard deviation of each observation.
        random: Generator of a draw (Matheron's rule); None for the mean.
    """
    drawn = np.zeros(deviations.size) if random is None else random.standard_normal(deviations.size)
    drawn = drawn * deviations
    if not len(rest):
        return drawn
    errors = np.zeros(len(rest)) if random is None else random.standard_normal(len(rest)) * noise
    spread = rows * deviations
    # In units of the largest observation, so that times of microseconds are no rounding errors.
    unit = float(np.abs(rows).max()) or 1.0
    covariance = (spread @ spread.T + np.diag(noise**2)) / unit**2
    covariance += np.eye(len(rest)) * 1e-12
    weights = np.linalg.solve(covariance, (rest - rows @ drawn - errors) / unit**2)
    return np.asarray(drawn + deviations * (spread.T @ weights))
