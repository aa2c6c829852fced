"""Results of statistics, merges, exports and garbage collections."""

from __future__ import annotations

from dataclasses import dataclass

from intarsia.measure.measure_result import MeasureError


@dataclass(frozen=True, slots=True)
class MergeCounts:
    """Counts of a merge of records from another database.

    Attributes:
        added: Number of new records.
        updated: Number of records with new measurements.
        skipped: Number of records without new measurements.
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
    """Counts of exported lines."""

    workloads: int
    hosts: int
    records: int


@dataclass(frozen=True, slots=True)
class RemovedCounts:
    """Counts of rows that the garbage collection has removed, or would remove."""

    records: int
    workloads: int
    hosts: int


@dataclass(frozen=True, slots=True)
class WorkloadSummary:
    """Summary of the records of a workload on a target and a host.

    Attributes:
        workload: Digest of the workload.
        name: Name of the workload; "" if unknown.
        target: Text of the target.
        host: Digest of the machine's fingerprint.
        records: Number of measured candidates.
        failed: Number of candidates that failed.
        best: The lowest cost in seconds; infinite if all failed.
        newest: Time of the last measurement, in seconds since 1970 (UTC).
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
    """Counts of everything in a database.

    Attributes:
        location: Path or URL, without password.
        schema_version: Version of the tables.
        records: Number of measured candidates on all targets and hosts.
        by_error: Number of records for each kind of outcome, the most frequent first.
        workloads: Number of workloads with records.
        hosts: Number of hosts with records.
        oldest: Time of the oldest record's newest measurement, in seconds since 1970 (UTC); None if empty.
        newest: Time of the newest record's newest measurement; None if empty.
        bytes: Size on disk in bytes.
    """

    location: str
    schema_version: int
    records: int
    by_error: tuple[tuple[MeasureError, int], ...]
    workloads: int
    hosts: int
    oldest: float | None
    newest: float | None
    bytes: int
