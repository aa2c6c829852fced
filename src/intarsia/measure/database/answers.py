"""What the database counts and sums up."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.measure.measure_result import MeasureError


@dataclass(frozen=True, slots=True)
class MergeCounts:
    """What records of elsewhere have changed.

    Attributes:
        added: Records of what was not there.
        updated: Records that have got further measurements.
        skipped: Records that were there already.
    """

    added: int = 0
    updated: int = 0
    skipped: int = 0

    def __add__(self, other: MergeCounts) -> MergeCounts:
        return MergeCounts(
            self.added + other.added, self.updated + other.updated, self.skipped + other.skipped
        )


@dataclass(frozen=True, slots=True)
class LineCounts:
    """How much was exported."""

    workloads: int
    hosts: int
    records: int


@dataclass(frozen=True, slots=True)
class RemovedCounts:
    """How much the garbage collection has removed, or would."""

    records: int
    workloads: int
    hosts: int


@dataclass(frozen=True, slots=True)
class WorkloadSummary:
    """What is known of a workload on a target and a host.

    Attributes:
        workload: Its digest.
        name: For people; "" if unknown.
        target: Text of the target.
        host: Digest of the machine's fingerprint.
        records: Candidates measured.
        failed: Those of them that failed.
        best: The lowest cost in seconds; infinite if all failed.
        newest: When the last was measured, in seconds since 1970 (UTC).
    """

    workload: str
    name: str
    target: str
    host: str
    records: int
    failed: int
    best: float
    newest: float


@dataclass(frozen=True, slots=True)
class Statistics:
    """How much there is.

    Attributes:
        place: Path or URL, without password.
        schema_version: Of the tables.
        records: Candidates measured, on whatever target and host.
        by_error: How they ended: kinds with how many, the most frequent first.
        workloads: Distinct ones that have records.
        hosts: Distinct ones that have records.
        oldest: Time of the oldest record's newest measurement, in seconds since 1970 (UTC); None if empty.
        newest: The same of the newest record.
        bytes: On disk.
    """

    place: str
    schema_version: int
    records: int
    by_error: tuple[tuple[MeasureError, int], ...]
    workloads: int
    hosts: int
    oldest: float | None
    newest: float | None
    bytes: int
