"""The record of a finished tuning run in the database."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A finished run.

    Attributes:
        key: Digest of the whole request.
        workload: Digest of the workload.
        host: Digest of the machine's fingerprint.
        finished_at: End of the run, in seconds since 1970 (UTC).
        outcome: Outcome of the run, as JSON in ASCII.
    """

    key: str
    workload: str
    host: str
    finished_at: float
    outcome: str


@dataclass(frozen=True, slots=True)
class ModelRecord:
    """The model of a finished run, for lookups by similar models.

    Attributes:
        run: Key of the run.
        request: Digest of the request without the model and the effort.
        layers: Digests of the model's layers, sorted and separated by spaces.
    """

    run: str
    request: str
    layers: str
