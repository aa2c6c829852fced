"""Check a floating-point output by the noise of correct engines in each of its parts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Final, Self

import numpy as np
import numpy.typing as npt

from intarsia.measure.element_kind import ElementKind, element_kind
from intarsia.measure.judge.gate_report import (
    EQUAL,
    Array,
    GateReport,
    WorstElement,
    number_text,
    structural_complaint,
    structure_report,
)
from intarsia.measure.judge.noise_profile import Floats, NoiseProfile, slice_rms
from intarsia.measure.judge.output_check import CHECK_KINDS, Facts
from intarsia.measure.judge.tolerance import machine_epsilon, smallest_normal

SLICE_FACTOR: Final = 8.0
ELEMENT_FACTOR: Final = 12.0
"""Allowed errors of a slice (in RMS) and of an element, as multiples of the noise; source: docs/judge.md."""

LOOSE_SLICE_FACTOR: Final = 3.0
LOOSE_ELEMENT_FACTOR: Final = 24.0
"""The same factors under a user's error bound, where the noise is not measured but allowed."""

UNSTABLE: Final = 0.1
"""Disagreement of trusted runs, as a fraction of an output, from which on its elements prove little."""

_ROUNDING: Final = 16.0
"""Allowed error of an element in machine epsilons of its value."""
_UNDERFLOW: Final = 4.0
"""Allowed error in units of the smallest normal number."""
_BIN_ELEMENT: Final = 24.0
"""Allowed error of one element of a group, as a multiple of the group's noise."""
_FLIPPED: Final = 0.5
"""Allowed RMS error of a slice in quantisation steps: a quarter of its elements may be off by one."""


@dataclass(frozen=True, eq=False)
class NumericCheck:
    """A check by slices, groups of similar magnitude, and elements.

    Attributes:
        position: Number of the output.
        name: The output's name.
        expected: The reference result, of real or complex numbers.
        spread: Largest difference of a judge from it, by element; real and imaginary parts in a last axis.
        step: Additional allowed difference of an element: a step of a quantised intermediate value.
        bound: Error bound of the user, as a fraction of the norm; 0 for none.
        slack: Difference that is subtracted from each element's error, shaped as `spread`: a step within the
            program falls on either side there. None without such a step.
    """

    kind: ClassVar[str] = "numeric"

    position: int
    name: str
    expected: Array
    spread: Array
    step: float = 0.0
    bound: float = 0.0
    _factors: tuple[float, float] = field(default=(SLICE_FACTOR, ELEMENT_FACTOR), repr=False)
    slack: Array | None = None

    @property
    def positions(self) -> tuple[int, ...]:
        """See OutputCheck.positions."""
        return (self.position,)

    def check(self, outputs: Sequence[Array]) -> GateReport:
        """See OutputCheck.check."""
        actual = np.asarray(outputs[self.position])
        if complaint := structural_complaint(actual, self.expected):
            return structure_report(f'output "{self.name}" has {complaint}')
        actual_parts, wanted = real_parts(actual), real_parts(self.expected)
        differs = _differs_in_kind(actual_parts, wanted)
        if differs is not None and not self._is_undecided(differs):
            worst = WorstElement.of(self.name, self._index(differs), actual, self.expected, 0.0)
            return GateReport(False, math.inf, math.inf, worst, str(worst), math.inf)
        with np.errstate(invalid="ignore", over="ignore"):
            differences = np.abs(actual_parts - wanted)
        # `where`, as arithmetic on arrays of rank 0 returns scalars, which are immutable.
        # Where trusted runs differ without bound, an element must not count in its rows and columns either.
        errors = np.where(np.isfinite(differences) & np.isfinite(self.spread), differences, 0.0)
        if self.slack is None:
            return self._report(errors, actual)
        report = self._report(np.maximum(errors - self.slack, 0.0), actual)
        largest, scale = float(errors.max(initial=0.0)), float(np.abs(wanted).max(initial=0.0))
        relative = largest / scale if scale else math.inf
        return replace(report, max_abs_error=largest, max_rel_error=relative if largest else 0.0)

    def around(self, outputs: Sequence[Array]) -> Self:
        """See OutputCheck.around."""
        return replace(self, expected=outputs[self.position])

    def loosened(self, bound: float) -> NumericCheck:
        """See OutputCheck.loosened."""
        return replace(self, bound=bound, _factors=(LOOSE_SLICE_FACTOR, LOOSE_ELEMENT_FACTOR))

    def facts(self) -> Facts:
        """See OutputCheck.facts."""
        return {"position": self.position, "name": self.name, "step": self.step, "bound": self.bound}

    def arrays(self) -> Mapping[str, Array]:
        """See OutputCheck.arrays."""
        return {"spread": self.spread} | ({} if self.slack is None else {"slack": self.slack})

    @classmethod
    def restored(cls, facts: Facts, arrays: Mapping[str, Array], expected: Sequence[Array]) -> Self:
        """See OutputCheck.restored."""
        position = int(facts["position"])
        step, slack = float(facts["step"]), arrays.get("slack")
        check = cls(position, facts["name"], expected[position], arrays["spread"], step, slack=slack)
        bound = float(facts["bound"])
        return replace(check, bound=bound, _factors=check.loosened(bound)._factors) if bound else check

    @property
    def disagreement(self) -> float:
        """Difference of trusted runs as a fraction of the output, both in RMS over finite elements."""
        size, off = (_finite_rms(real_parts(array)) for array in (self.expected, self.spread))
        return off / size if size else 0.0

    @property
    def undecided(self) -> float:
        """Share of the elements that a step within the program may move by the size of the output."""
        if self.slack is None or not self.slack.size:
            return 0.0
        return float(np.mean(self.slack > _finite_rms(real_parts(self.expected))))

    @cached_property
    def profile(self) -> NoiseProfile:
        """Noise of each part."""
        wanted, spread = real_parts(self.expected), self.spread.astype(np.float64)
        # Where judges differ in what is not finite, nothing can be said; where all have it, nothing is off.
        finite = np.isfinite(wanted) & np.isfinite(spread)
        wanted, spread = np.where(finite, wanted, 0.0), np.where(finite, spread, 0.0)
        profile = NoiseProfile(wanted, spread, machine_epsilon(self.expected.dtype))
        return profile.allowing(self.bound) if self.bound else profile

    @cached_property
    def allowed(self) -> Floats:
        """Allowed difference of each element."""
        dtype, profile = self.expected.dtype, self.profile
        rounding = _ROUNDING * profile.eps * np.abs(profile.expected)
        underflow = _UNDERFLOW * smallest_normal(dtype)
        allowed: Floats = self._factors[1] * profile.element_sigma() + rounding + underflow + self.step
        return np.where(np.isfinite(self.spread), allowed, math.inf)

    def _is_undecided(self, position: int) -> bool:
        return not math.isfinite(float(self.spread.reshape(-1)[position]))

    def _index(self, position: int) -> int:
        return position // 2 if element_kind(self.expected.dtype) is ElementKind.COMPLEX else position

    def _report(self, errors: Floats, actual: Array) -> GateReport:
        largest = float(errors.max(initial=0.0))
        if largest == 0:
            return GateReport(True, 0.0, 0.0, None, EQUAL)
        scale = float(np.abs(self.profile.expected).max())
        relative = largest / scale if scale else math.inf
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = np.where(errors > 0, errors / self.allowed, 0.0)
        position = int(shares.argmax())
        share = float(shares.reshape(-1)[position])
        limit = float(self.allowed.reshape(-1)[position])
        worst = WorstElement.of(self.name, self._index(position), actual, self.expected, limit)
        part_share, complaint = max(self._part_shares(errors), default=(0.0, ""))
        excess = max(share, part_share)
        if excess > 1:
            message = str(worst) if share > 1 else complaint
            return GateReport(False, largest, relative, worst, message, excess)
        message = f"every output is within tolerance; nearest to its limit: {worst}"
        # The difference of two orders of equal scores is no error.
        counted = 0.0 if self.disagreement > UNSTABLE else relative
        return GateReport(True, largest, counted, worst, message, excess)

    def _part_shares(self, errors: Floats) -> Iterator[tuple[float, str]]:
        """Yield the used share of each kind of part's allowed error, with a message for shares above 1."""
        for kind in self.profile.slices:
            others = kind.other_axes(errors.ndim)
            largest = np.max(np.where(np.isfinite(self.allowed), self.allowed, 0), axis=others, keepdims=True)
            limits = self._limit(kind.sigma, kind.count) + 0.5 * largest / math.sqrt(kind.count)
            limits = limits + _FLIPPED * self.step
            errors_rms = slice_rms(errors, others)
            shares = _shares(errors_rms, limits)
            worst = np.unravel_index(int(shares.argmax()), shares.shape)
            part = self._part_name(tuple((axis, int(worst[axis])) for axis in kind.axes))
            yield float(shares[worst]), _complaint(part, float(errors_rms[worst]), float(limits[worst]))
        yield from self._bin_shares(errors)
        if self.bound:
            size, off = (_rms(values) for values in (self.profile.expected, errors))
            yield _share(off, self.bound * size), _complaint(self._part_name(()), off, self.bound * size)

    def _bin_shares(self, errors: Floats) -> Iterator[tuple[float, str]]:
        bins = self.profile.bins
        used = bins.bins >= 0
        if not used.any():
            return
        flat = errors.reshape(-1)[used]
        counts = np.maximum(bins.count, 1)
        errors_rms = np.sqrt(np.bincount(bins.bins[used], flat * flat, bins.sigma.size) / counts)
        limits = self._limit(bins.sigma, counts) + 0.5 * _BIN_ELEMENT * bins.sigma / np.sqrt(counts)
        limits += self.step  # below a step, the magnitude is arbitrary
        shares = _shares(errors_rms, limits)
        worst = int(shares.argmax())
        ends = number_text(float(bins.low[worst]), 2), number_text(float(bins.high[worst]), 2)
        values = f"values of magnitude {ends[0]} to {ends[1]}" if bins.low[worst] else "expected zeros"
        part = f'output "{self.name}", {values}'
        yield float(shares[worst]), _complaint(part, float(errors_rms[worst]), float(limits[worst]))

    def _limit(self, sigma: Floats, count: Any) -> Any:
        base = self._factors[0] * (1 + 4 / np.sqrt(count)) * sigma
        return base + _UNDERFLOW * smallest_normal(self.expected.dtype)

    def _part_name(self, indices: Sequence[tuple[int, int]]) -> str:
        text = " and ".join(f"index {index} of axis {axis}" for axis, index in indices)
        return f'output "{self.name}"' + (f", {text}" if text else "")


def real_parts(array: Array) -> Floats:
    """Return the numbers as float64, always a copy; complex ones with their parts in a last axis."""
    if element_kind(array.dtype) is not ElementKind.COMPLEX:
        return array.astype(np.float64)
    return np.stack([array.real, array.imag], axis=-1).astype(np.float64)


def _rms(values: Floats) -> float:
    return float(np.sqrt(np.mean(values * values))) if values.size else 0.0


def _differs_in_kind(actual: Floats, wanted: Floats) -> int | None:
    """Return the first position of NaN or an infinity where the other array has another value."""
    if np.isfinite(actual).all() and np.isfinite(wanted).all():
        return None
    same = (np.isnan(actual) & np.isnan(wanted)) | (actual == wanted)
    odd: npt.NDArray[np.intp] = np.flatnonzero(~(same | (np.isfinite(actual) & np.isfinite(wanted))))
    return int(odd[0]) if odd.size else None


def _shares(found: Floats, limits: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(found > 0, found / limits, 0.0)


def _share(found: float, limit: float) -> float:
    return float(_shares(np.asarray(found), np.asarray(limit)))


def _complaint(part: str, found: float, limit: float) -> str:
    return f"{part} is off by {number_text(found, 3)} in RMS, expected {number_text(limit, 2)} at most"


CHECK_KINDS.register(NumericCheck.kind, NumericCheck)


def _finite_rms(values: npt.NDArray[Any]) -> float:
    wide = np.where(np.isfinite(values), values, 0.0).astype(np.float64)
    return math.sqrt(float(np.mean(wide * wide))) if wide.size else 0.0
