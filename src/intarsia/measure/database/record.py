"""The record of a candidate in the database."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Final, TypeAlias

from intarsia.measure.measure_input import Candidate, CandidateInput, PlainData
from intarsia.measure.measure_result import MeasureError, MeasureResult
from intarsia.support.digest import digest_text

KEPT: Final = 16
"""Number of the newest measurements of a candidate that are kept."""

SortKey: TypeAlias = tuple[float, bool, str, tuple[float, ...], str, float, float, float]


@dataclass(frozen=True, slots=True)
class Measurement:
    """One measurement of a candidate.

    Attributes:
        result: Costs, or the failure.

    Raises:
        ValueError: A cost or time is negative or no number, or a failure has costs.
    """

    result: MeasureResult

    def __post_init__(self) -> None:
        result = self.result
        seconds = result.wall_seconds, result.charged_seconds or 0.0
        if not all(0 <= number < math.inf for number in (*result.costs, *seconds)):
            raise ValueError(f"costs and times are finite and not negative, unlike those of {result}")
        if not math.isfinite(result.timestamp):
            raise ValueError(f"the time of measuring is finite, unlike that of {result}")
        if result.costs and not result.is_ok:
            raise ValueError(f"a failure has no costs, unlike {result}")
        if result.max_error is not None and math.isnan(result.max_error):  # it is not even equal to itself
            object.__setattr__(self, "result", replace(result, max_error=math.inf))

    @property
    def order(self) -> SortKey:
        """Sort key: the time, then failures after successes.

        A total order, so that merges are deterministic.
        """
        result = self.result
        error = -1.0 if result.max_error is None else result.max_error
        charged = -1.0 if result.charged_seconds is None else result.charged_seconds
        verdict = (not result.is_ok, result.error.value)
        return (result.timestamp, *verdict, result.costs, result.message, result.wall_seconds, error, charged)


@dataclass(frozen=True, slots=True)
class MeasureRecord:
    """A candidate with its measurements.

    The newest measurement decides whether it works. Its costs are the repeats of all measurements since
    the last failure, so that one lucky measurement does not decide for ever.

    Attributes:
        workload: Digest of the workload.
        target: Text of the target.
        host: Digest of the machine's fingerprint.
        kind: The candidate's kind.
        trace: The candidate's decisions as canonical JSON.
        measurements: Distinct measurements, the oldest first, at most `KEPT`.

    Raises:
        ValueError: There is no measurement, or a text is empty or has a NUL.
    """

    workload: str
    target: str
    host: str
    kind: str
    trace: str
    measurements: tuple[Measurement, ...]

    def __post_init__(self) -> None:
        texts = (self.workload, self.target, self.host, self.kind, self.trace)
        if not all(texts) or "\0" in "".join(texts):
            raise ValueError(f"the texts of a record are not empty and have no NUL, unlike {texts}")
        "".join(texts).encode()  # half a surrogate pair is a ValueError too
        if not self.measurements:
            raise ValueError("a record has at least one measurement")
        object.__setattr__(self, "measurements", _newest(self.measurements))

    @classmethod
    def of(cls, measured: CandidateInput, host: str, result: MeasureResult) -> MeasureRecord:
        """Return the record of one measurement.

        Args:
            measured: Candidate, workload and target.
            host: Digest of the machine's fingerprint.
            result: Result of the measurement.
        """
        candidate, measurement = measured.candidate, Measurement(result)
        workload, target = measured.workload.digest, str(measured.target)
        return cls(workload, target, host, candidate.kind, candidate.text, (measurement,))

    @property
    def candidate(self) -> Candidate:
        """The candidate, to be instantiated again."""
        trace: PlainData = json.loads(self.trace)
        return Candidate(self.kind, trace)

    @property
    def key(self) -> str:
        """Digest of workload, target, host and candidate."""
        return record_key(self.workload, self.target, self.host, self.candidate_digest)

    @property
    def candidate_digest(self) -> str:
        """The value of `Candidate.digest`, from the trace's text."""
        return digest_text((self.kind, self.trace))

    @property
    def result(self) -> MeasureResult:
        """The pooled result: the repeats of all measurements since the last failure, or the failure."""
        valid_measurements = self._counted
        newest = valid_measurements[-1].result
        if len(valid_measurements) == 1:
            return newest
        costs = tuple(cost for item in valid_measurements for cost in item.result.costs)
        seconds = sum(item.result.wall_seconds for item in valid_measurements)
        checked = (item.result.errors for item in reversed(valid_measurements) if item.result.errors)
        return replace(
            newest,
            costs=costs,
            wall_seconds=seconds,
            max_error=self.max_error,
            charged_seconds=None,
            errors=next(checked, ()),
        )

    @property
    def is_ok(self) -> bool:
        """Whether the newest measurement worked."""
        return self.measurements[-1].result.is_ok

    @property
    def error(self) -> MeasureError:
        """How the newest measurement ended."""
        return self.measurements[-1].result.error

    @property
    def cost(self) -> float:
        """The median of the costs in seconds; infinite for a failure."""
        return self.result.cost

    @property
    def timestamp(self) -> float:
        """Time of the last measurement, in seconds since 1970 (UTC)."""
        return self.measurements[-1].result.timestamp

    @property
    def max_error(self) -> float | None:
        """Largest difference from the reference result since the last failure."""
        errors = (item.result.max_error for item in self._counted)
        return max((error for error in errors if error is not None), default=None)

    @property
    def _counted(self) -> tuple[Measurement, ...]:
        if not self.is_ok:
            return self.measurements[-1:]
        working = takewhile(lambda item: item.result.is_ok, reversed(self.measurements))
        return tuple(working)[::-1]

    def combined(self, other: MeasureRecord) -> MeasureRecord:
        """Return the record with the measurements of both.

        Raises:
            ValueError: They are not of the same candidate, workload, target and host.
        """
        mine, others = replace(self, measurements=other.measurements), other
        if mine != others:
            raise ValueError(f"records of different things cannot be combined: {self}, {other}")
        measurements = _newest((*self.measurements, *other.measurements))
        return self if measurements == self.measurements else replace(self, measurements=measurements)


@dataclass(frozen=True, slots=True)
class Hint:
    """A candidate that was good on another machine. It has no cost: costs of machines do not compare.

    Attributes:
        host: Digest of the machine it was measured on.
        kind: The candidate's kind.
        trace: The candidate's decisions as canonical JSON.
        rank: Rank on that machine, 1 for the best.
    """

    host: str
    kind: str
    trace: str
    rank: int

    @property
    def candidate(self) -> Candidate:
        """The candidate, to be measured here."""
        trace: PlainData = json.loads(self.trace)
        return Candidate(self.kind, trace)


def record_key(workload: str, target: str, host: str, candidate: str) -> str:
    """Return the key of a record: the digest of workload, target, host and candidate."""
    return digest_text((workload, target, host, candidate))


def _newest(measurements: Iterable[Measurement]) -> tuple[Measurement, ...]:
    by_order = {item.order: item for item in measurements}
    return tuple(by_order[order] for order in sorted(by_order))[-KEPT:]
