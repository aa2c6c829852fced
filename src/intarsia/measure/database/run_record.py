"""What the database keeps of a finished tuning run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A finished run.

    Attributes:
        key: Digest of all that was asked.
        workload: Digest of the workload.
        host: Digest of the machine's fingerprint.
        finished_at: When, in seconds since 1970 (UTC).
        outcome: What came of it, as JSON in ASCII.
    """

    key: str
    workload: str
    host: str
    finished_at: float
    outcome: str


@dataclass(frozen=True, slots=True)
class ModelRecord:
    """The model of a finished run, as others of its family find it.

    Attributes:
        run: The run's key.
        asked: Digest of all that was asked but the model and the effort.
        layers: Digests of the model's layers, sorted and separated by spaces.
    """

    run: str
    asked: str
    layers: str
