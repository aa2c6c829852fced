"""The types of layers, by costs that are corrected by whole programs: the fastest program that was measured.

Costs of layers propose programs. Each proposal is measured, its error and its time, and corrects the costs;
then they propose again. One type for all layers, and the layers that greed leaves in integers, are measured
as well, so that what is chosen is never slower than these.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from intarsia.tune.quantise.fitted_costs import Measured, fitted
from intarsia.tune.quantise.layer_types import LayerTypes
from intarsia.tune.quantise.output_error import OutputError
from intarsia.tune.quantise.precision_problem import PrecisionProblem

REPAIRS: Final = 5
"""Maximum number of programs whose errors are measured for one proposal."""

ROUNDS: Final = 6
"""Maximum number of times that costs are corrected and propose programs."""

_NEW: Final = 3
"""Programs that a round measures."""

_DRAWS: Final = 8
"""Maximum number of proposals of each round by costs that may be true, beside those by the likeliest ones."""

_CLOSER: Final = 0.9
"""Factor of the budget where a proposal misses it that was corrected before."""

Allows: TypeAlias = Callable[[OutputError], bool]


@dataclass(frozen=True, slots=True)
class LayerChoice:
    """Types of layers, with the measured error of the program.

    Attributes:
        layers: Numbers of the layers in each type.
        error: Error on inputs that were held back.
        seconds: Measured time of the program.
    """

    layers: LayerTypes
    error: OutputError
    seconds: float


def greedy_layers(
    errors: Sequence[float], measure: Callable[[LayerTypes], OutputError], is_allowed: Allows
) -> LayerTypes | None:
    """Return the layers in integers when those of the largest errors alone go back to float32.

    That is how tools with accuracy control go about it: times play no part. The smallest number of layers
    that go back is looked for by halves.

    Args:
        errors: Error of each layer alone in integers.
        measure: Function that measures the error of a program.
        is_allowed: Function that returns whether a program with an error may be chosen.

    Returns:
        The layers; None if all go back.
    """
    order = sorted(range(len(errors)), key=lambda number: -errors[number])
    whole = LayerTypes(frozenset(order))
    # Errors of fewer layers may be larger, so that halves alone would miss it.
    if whole and is_allowed(measure(whole)):
        return whole
    least, most = 0, len(order)
    while least < most:
        middle = (least + most) // 2
        kept = LayerTypes(frozenset(order[middle:]))
        least, most = (least, middle) if is_allowed(measure(kept)) else (middle + 1, most)
    return LayerTypes(frozenset(order[least:])) if least < len(order) else None


class LayerSearch:
    """A search for the fastest types of layers on one toolchain, for several budgets.

    What is measured for one budget corrects the costs for the next.
    """

    def __init__(
        self,
        problem: PrecisionProblem,
        measure: Callable[[LayerTypes], OutputError],
        race: Callable[[Sequence[LayerTypes]], Sequence[float]],
        *,
        seconds: float = math.inf,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Begin with costs of layers alone.

        Args:
            problem: Times and errors of the layers.
            measure: Function that measures the error of a program.
            race: Function that measures times of programs interleaved; infinite for one that does not run.
            seconds: Time for proposals for one budget; the first ones are measured in any case.
            clock: Function that returns seconds.
        """
        self._problem, self._measure, self._race = problem, measure, race
        self._seconds, self._clock = seconds, clock
        self._errors: dict[LayerTypes, OutputError] = {LayerTypes(): OutputError(0.0)}
        self._times: dict[LayerTypes, float] = {}
        self._random = np.random.default_rng(0)

    def measure(self, types: LayerTypes) -> OutputError:
        """Return the error of a program, which is measured once."""
        if types not in self._errors:
            self._errors[types] = self._measure(types)
        return self._errors[types]

    def best(self, budget: float, is_allowed: Allows) -> LayerChoice | None:
        """Return the fastest measured program whose error is allowed; None if that is the one in float32.

        Args:
            budget: Largest relative error; proposals are made for it.
            is_allowed: Function that returns whether a program with an error may be chosen. Where the budget
                is kept, but the error is not allowed (by a metric), the budget is halved.
        """
        start = self._clock()
        proposing = _Proposing(self, budget, is_allowed)
        errors = [layer.error for layer in self._problem.layers]
        offered = [*self._uniform(), greedy_layers(errors, self.measure, is_allowed), proposing.next(None)]
        self._time(offered)
        for _ in range(ROUNDS):
            new: dict[LayerTypes, None] = {}  # in the order of the proposals
            for draw in [None, *[self._random] * _DRAWS]:
                if len(new) == _NEW or self._clock() - start >= self._seconds:
                    break
                types = proposing.next(draw)
                if types is not None and types not in self._times:
                    new[types] = None
            if not new:
                break
            self._time(new)
        return self._fastest(is_allowed)

    def problem(self, budget: float, random: np.random.Generator | None = None) -> PrecisionProblem:
        """Return the costs corrected by all that was measured, or a draw of what they may be."""
        errors = tuple((types, error.relative**2) for types, error in self._errors.items() if types)
        return fitted(self._problem, Measured(tuple(self._times.items()), errors, budget**2), random)

    def _uniform(self) -> list[LayerTypes]:
        layers = range(len(self._problem.layers))
        halves = [number for number, layer in enumerate(self._problem.layers) if layer.bfloat16 < math.inf]
        return [LayerTypes(), LayerTypes(frozenset(layers)), LayerTypes(bfloat16=frozenset(halves))]

    def _time(self, programs: Iterable[LayerTypes | None]) -> None:
        """Time programs that were not timed, beside the fastest so far, to whose time theirs are related."""
        new = [types for types in dict.fromkeys(programs) if types is not None and types not in self._times]
        if not new:
            return
        fastest = min(self._times, key=lambda types: self._times[types], default=None)
        seconds = list(self._race([*new, *([] if fastest is None else [fastest])]))
        scale = 1.0
        if fastest is not None and 0 < seconds[-1] < math.inf:
            scale = self._times[fastest] / seconds[-1]
        self._times.update({types: scale * time_ for types, time_ in zip(new, seconds, strict=False)})

    def _fastest(self, is_allowed: Allows) -> LayerChoice | None:
        for types in sorted(self._times, key=lambda types: (self._times[types], bool(types))):
            if not types or self._times[types] == math.inf:
                return None
            error = self.measure(types)
            if is_allowed(error):
                return LayerChoice(types, error, self._times[types])
        return None


@dataclass(eq=False)
class _Proposing:
    """Proposals for one budget.

    Attributes:
        search: The search, with its measurements.
        budget: Largest relative error that proposals are made for.
        is_allowed: Function that returns whether an error is allowed.
    """

    search: LayerSearch
    budget: float
    is_allowed: Allows

    def next(self, random: np.random.Generator | None) -> LayerTypes | None:
        """Return the fastest program by the costs whose measured error is allowed; None if there is none.

        Each error that is too large corrects the costs, which then propose another program.

        Args:
            random: Generator for a draw of the costs; None for the likeliest ones.
        """
        tried: set[LayerTypes] = set()
        aim = self.budget
        for _ in range(REPAIRS):
            types = self.search.problem(self.budget, random).solve(aim**2)
            if not types:
                return None
            error = self.search.measure(types)
            if self.is_allowed(error):
                return types
            if error.relative <= self.budget:
                self.budget /= 2
                aim = min(aim, self.budget)
            elif types in tried:
                aim *= _CLOSER
            tried.add(types)
        return None
