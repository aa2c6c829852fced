"""Loads that were measured before: kept in the database like latencies, and used again by later runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from intarsia.measure.database import Database, Measurement, MeasureRecord
from intarsia.measure.load.load_result import LoadResult
from intarsia.measure.measure_input import Candidate
from intarsia.measure.measure_result import MeasureError, MeasureResult
from intarsia.runtime.stream_choice import StreamChoice
from intarsia.support.digest import digest_text
from intarsia.target import Host

LOAD: Final = "load"
"""Kind of the records of loads, and their target; such candidates are only looked up."""

GENERATOR: Final = 2
"""Version of the generators of load: rates of different ones do not compare."""

ENOUGH: Final = 0.9
"""Share of the requested seconds from which a stored measurement counts."""


@dataclass(eq=False)
class StoredLoads:
    """Measurements of programs under load, each used once in a run.

    They are records of a workload of their own, since a program's requests per second do not compare with its
    latency. A run that is repeated uses the same measurements in the same order, and so decides the same; one
    that was interrupted goes on at the first that is missing.

    Attributes:
        database: Database, or None to measure everything.
        workload: Digest of the model with its inputs.
        name: Name of the model.
        host: The machine.
        concurrency: Number of requests under way at saturation.
        programs: Identity of each program by its name: its target, or the digest of its plan.
        clock: Function that returns seconds since 1970.
    """

    database: Database | None
    workload: str
    name: str
    host: Host
    concurrency: int
    programs: Mapping[str, str]
    clock: Callable[[], float] = time.time
    measured: int = field(default=0, init=False)
    """Number of new measurements."""
    _used: set[tuple[str, Measurement]] = field(default_factory=set)

    def measure(
        self,
        program: str,
        choice: StreamChoice,
        seconds: float,
        run: Callable[[], LoadResult],
        arrival_rate: float | None = None,
    ) -> LoadResult:
        """Return a stored measurement that this run has not used yet, or measure and store the result.

        Args:
            program: Name of the program.
            choice: Streams, threads and batch of its pool.
            seconds: Seconds of the measurement.
            run: Function that measures.
            arrival_rate: Requests per second of an open loop; None at saturation.

        Raises:
            DatabaseError: A result cannot be kept.
        """
        candidate = Candidate(
            LOAD,
            {
                "program": self.programs.get(program, program),
                "streams": choice.streams,
                "threads": choice.threads,
                "batch": choice.batch,
                "concurrency": self.concurrency,
                "generator": GENERATOR,
                "arrival_rate": None if arrival_rate is None else f"{arrival_rate:.4g}",
            },
        )
        for measurement in self._stored(candidate):
            key = candidate.digest, measurement
            if key not in self._used and measurement.result.wall_seconds >= ENOUGH * seconds:
                self._used.add(key)
                return _load(measurement.result)
        load = run()
        self.measured += 1
        if load.rate > 0 and not load.failures:
            self._keep(candidate, seconds, load)
        return load

    @property
    def _digest(self) -> str:
        return digest_text((LOAD, self.workload))

    def _stored(self, candidate: Candidate) -> tuple[Measurement, ...]:
        if self.database is None:
            return ()
        record = self.database.find(self._digest, LOAD, candidate, self.host.digest)
        return () if record is None else record.measurements

    def _keep(self, candidate: Candidate, seconds: float, load: LoadResult) -> None:
        if self.database is None:
            return
        costs = (1 / load.rate, load.p50, load.p95, load.p99)
        measurement = Measurement(MeasureResult(costs, MeasureError.OK, "", seconds, self.clock()))
        self._used.add((candidate.digest, measurement))
        self.database.add_host(self.host)
        self.database.add_workload(self._digest, f"{self.name}, {LOAD}")
        record = (self._digest, LOAD, self.host.digest, candidate.kind, candidate.text)
        self.database.commit(MeasureRecord(*record, (measurement,)))


def _load(result: MeasureResult) -> LoadResult:
    """Return the load whose seconds for a request, and quantiles of latencies, are the costs."""
    seconds, *quantiles = result.costs
    return LoadResult(round(result.wall_seconds / seconds), 0, 1 / seconds, *quantiles)
