"""What was measured under load: requests per second, and quantiles of their latencies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class LoadResult:
    """Requests under load.

    Attributes:
        requests: Number of requests that ended with a result.
        failures: Number of requests that ended with an error.
        rate: Requests with a result per second.
        p50: Median latency in seconds.
        p95: 95th percentile of the latencies in seconds.
        p99: 99th percentile of the latencies in seconds.
    """

    requests: int
    failures: int
    rate: float
    p50: float
    p95: float
    p99: float

    @classmethod
    def of(cls, latencies: Sequence[float], failures: int, seconds: float) -> LoadResult:
        """Return the result of requests with these latencies in seconds, which took so long in total."""
        quantiles = np.percentile(latencies, (50, 95, 99)) if latencies else (np.inf,) * 3
        return cls(len(latencies), failures, len(latencies) / seconds, *(float(value) for value in quantiles))
