"""The workers of a Dask cluster, and those on machines like this one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from intarsia.measure.testbed.station import StationFacts, facts
from intarsia.support.errors import UsageError
from intarsia.target import Host

if TYPE_CHECKING:
    from distributed import Client

_PAUSE_S: Final = 0.1
"""Seconds between two looks for a first worker."""


@dataclass(eq=False)
class ClusterWorkers:
    """Workers as of the last look; the facts of each are queried once.

    Attributes:
        client: Client of the scheduler.
        address: Address of the scheduler.
        wanted: Required facts of workers.
        clock: Function that returns seconds.
    """

    client: Client
    address: str
    wanted: StationFacts
    clock: Callable[[], float] = time.monotonic
    _threads: Mapping[str, int] = field(default_factory=dict)
    _facts: dict[str, StationFacts | Exception] = field(default_factory=dict)
    fit: Mapping[str, int] = field(default_factory=dict, init=False)
    """Threads of the workers that measure as this machine does, by address, at the last look."""

    def look(self) -> None:
        """Update the workers, and query the facts of new ones; no workers if the scheduler is unreachable."""
        try:
            self._threads = self.client.nthreads() if self.client.status == "running" else {}
            if new_workers := [worker for worker in self._threads if worker not in self._facts]:
                self._facts |= self.client.run(_tell, workers=new_workers, on_error="return")
        except OSError:  # TimeoutError is one, too
            self._threads = {}
        self.fit = {worker: count for worker, count in self._threads.items() if self._is_fit(worker)}

    @property
    def fit_threads(self) -> int:
        """Number of threads of these workers; 0 before the first look."""
        return sum(self.fit.values())

    def threads_by_host(self) -> dict[Host, int]:
        """Return the machines of workers of this version, each with the number of their threads."""
        threads: dict[Host, int] = {}
        for worker, count in self._threads.items():
            worker_facts = self._facts.get(worker)
            if isinstance(worker_facts, StationFacts) and worker_facts.version == self.wanted.version:
                threads[worker_facts.host] = threads.get(worker_facts.host, 0) + count
        return threads

    def expect_any(self, seconds: float) -> None:
        """Wait for a first worker, and check that all have this version, and some can run it.

        Raises:
            UsageError: There are none, or some have another version of Intarsia.
        """
        self._wait_for_first(seconds)
        self._expect_version()
        if not self.threads_by_host():
            raise UsageError(
                f"no worker of the cluster at {self.address} can run Intarsia: {'; '.join(self._misfits())}",
                help="install it on their machines, and start the workers again",
            )

    def expect(self, seconds: float) -> None:
        """Wait for a first worker, and check that some are fit.

        Raises:
            UsageError: There are none, or some have another version of Intarsia.
        """
        self._wait_for_first(seconds)
        self._expect_version()
        if not self.fit_threads:
            raise UsageError(
                f"no worker of the cluster at {self.address} is a machine such as this one: "
                + "; ".join(self._misfits()),
                help="costs of another machine are never used: "
                f"start a worker on this one or one like it with: dask worker {self.address}",
            )

    def _wait_for_first(self, seconds: float) -> None:
        until = self.clock() + seconds
        self.look()
        while not self._threads and self.clock() < until:
            time.sleep(_PAUSE_S)
            self.look()
        if not self._threads:
            raise UsageError(
                f"the cluster at {self.address} has no workers",
                help=f"start one on a machine such as this one: dask worker {self.address}",
            )

    def _expect_version(self) -> None:
        version = self.wanted.version
        others = [
            f"{worker} has {worker_facts.version}"
            for worker in self._threads
            if isinstance(worker_facts := self._facts.get(worker), StationFacts)
            and worker_facts.version != version
        ]
        if others:
            raise UsageError(
                f"workers of the cluster have another version of Intarsia than {version}: "
                + ", ".join(others),
                help="install the same version everywhere, and start the workers again",
            )

    def _is_fit(self, worker: str) -> bool:
        worker_facts = self._facts.get(worker)
        return isinstance(worker_facts, StationFacts) and worker_facts.resource == self.wanted.resource

    def _misfits(self) -> list[str]:
        """Workers that are there with what is wrong with them, those of one kind together."""
        kinds: dict[str, list[str]] = {}
        for worker in self._threads:
            worker_facts = self._facts.get(worker)
            if isinstance(worker_facts, StationFacts):
                why = ", ".join(self.wanted.host.differences(worker_facts.host))
            else:
                why = f"it cannot run Intarsia: {worker_facts}"
            kinds.setdefault(why, []).append(worker)
        return [f"{' and '.join(workers)} ({why})" for why, workers in kinds.items()]


async def _tell() -> StationFacts:
    """Run by workers, in the thread that must go on answering the scheduler."""
    return await asyncio.to_thread(facts)
