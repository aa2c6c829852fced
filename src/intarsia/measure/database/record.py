"""What the database keeps of a candidate."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Final, TypeAlias

from intarsia.measure.measure_input import Candidate, MeasureInput, PlainData
from intarsia.measure.measure_result import MeasureError, MeasureResult
from intarsia.support.digest import digest_text

KEPT: Final = 16
"""Measurements of one candidate that are kept, the newest; older ones are forgotten."""

SortKey: TypeAlias = tuple[float, bool, str, tuple[float, ...], str, float, float]


@dataclass(frozen=True, slots=True)
class Measurement:
    """One measurement of a candidate.

    Attributes:
        result: Its costs, or why there are none.

    Raises:
        ValueError: A cost or time is negative or no number, or a failure has costs.
    """

    result: MeasureResult

    def __post_init__(self) -> None:
        result = self.result
        if not all(0 <= number < math.inf for number in (*result.costs, result.wall_seconds)):
            raise ValueError(f"costs and times are finite and not negative, unlike those of {result}")
        if not math.isfinite(result.timestamp):
            raise ValueError(f"the time of measuring is finite, unlike that of {result}")
        if result.costs and not result.is_ok:
            raise ValueError(f"a failure has no costs, unlike {result}")
        if result.max_error is not None and math.isnan(result.max_error):  # it is not even equal to itself
            object.__setattr__(self, "result", replace(result, max_error=math.inf))

    @property
    def order(self) -> SortKey:
        """By time, at the same time failures last; whatever is not equal is before or after."""
        result = self.result
        error = -1.0 if result.max_error is None else result.max_error
        verdict = (not result.is_ok, result.error.value)
        return (result.timestamp, *verdict, result.costs, result.message, result.wall_seconds, error)


@dataclass(frozen=True, slots=True)
class MeasureRecord:
    """A candidate with its measurements.

    The newest measurement decides whether it works. Its costs are the repeats of all measurements since
    the last failure, so that a lucky first draw does not stay the truth for ever.

    Attributes:
        workload: Digest of the workload.
        target: Text of the target.
        host: Digest of the machine's fingerprint.
        kind: The candidate's kind.
        trace: The candidate's decisions as canonical JSON.
        measurements: Oldest first, each once, at most `KEPT`.

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
    def of(cls, measured: MeasureInput, host: str, result: MeasureResult) -> MeasureRecord:
        """The record of one measurement.

        Args:
            measured: What was measured.
            host: Digest of the machine's fingerprint.
            result: What it gave.
        """
        candidate, measurement = measured.candidate, Measurement(result)
        workload, target = measured.workload.digest, str(measured.target)
        return cls(workload, target, host, candidate.kind, candidate.text, (measurement,))

    @property
    def candidate(self) -> Candidate:
        """The candidate, to be carried out again."""
        trace: PlainData = json.loads(self.trace)
        return Candidate(self.kind, trace)

    @property
    def key(self) -> str:
        """Digest of workload, target, host and candidate: equal for measurements of the same."""
        return record_key(self.workload, self.target, self.host, self.candidate_digest)

    @property
    def candidate_digest(self) -> str:
        """`Candidate.digest`, of which the trace is the text."""
        return digest_text((self.kind, self.trace))

    @property
    def result(self) -> MeasureResult:
        """All that counts as one: the repeats of all measurements since the last failure, or the failure."""
        counted = self._counted
        newest = counted[-1].result
        if len(counted) == 1:
            return newest
        costs = tuple(cost for each in counted for cost in each.result.costs)
        seconds = sum(each.result.wall_seconds for each in counted)
        return replace(newest, costs=costs, wall_seconds=seconds, max_error=self.max_error)

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
        """When it was measured last, in seconds since 1970 (UTC)."""
        return self.measurements[-1].result.timestamp

    @property
    def max_error(self) -> float | None:
        """The largest difference to the reference result found since the last failure."""
        errors = (each.result.max_error for each in self._counted)
        return max((error for error in errors if error is not None), default=None)

    @property
    def _counted(self) -> tuple[Measurement, ...]:
        if not self.is_ok:
            return self.measurements[-1:]
        working = takewhile(lambda each: each.result.is_ok, reversed(self.measurements))
        return tuple(working)[::-1]

    def combined(self, other: MeasureRecord) -> MeasureRecord:
        """The record with the measurements of both.

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
    """A candidate that was good on another machine. Its cost there says nothing of this one, so it has none.

    Attributes:
        host: Digest of the machine it was measured on.
        kind: The candidate's kind.
        trace: The candidate's decisions as canonical JSON.
        rank: 1 for the best of that machine.
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
    """Digest of what makes measurements those of the same."""
    return digest_text((workload, target, host, candidate))


def _newest(measurements: Iterable[Measurement]) -> tuple[Measurement, ...]:
    by_order = {each.order: each for each in measurements}
    return tuple(by_order[order] for order in sorted(by_order))[-KEPT:]
