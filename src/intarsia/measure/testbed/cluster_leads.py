"""Run a function on one worker of each kind of machine of a Dask cluster.

Such a function leads a run: it submits candidates to the workers on machines such as its own. It leaves the
threads of its worker free, which measures meanwhile as the others do. Workers offer one lead each, as a
resource beside that for candidates, so that a lead whose worker is lost goes to another one of its kind.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar
from uuid import uuid4

from intarsia.measure.testbed.cluster_workers import ClusterWorkers
from intarsia.measure.testbed.dask_cluster import open_client, prepare_workers
from intarsia.measure.testbed.station import StationFacts
from intarsia.support.callbacks import never, silent
from intarsia.support.errors import ExecutionError, IntarsiaError
from intarsia.support.version import VERSION
from intarsia.target import Host
from intarsia.toolchain.this_host import this_host

if TYPE_CHECKING:
    from distributed import Client, Future

_POLL_S: Final = 0.2
_LOOK_S: Final = 1.0
"""Seconds between two looks at the workers."""

_STOPS: Final[dict[str, threading.Event]] = {}
"""In workers: events that are set to stop the leads of a session."""

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class LeadCallbacks:
    """What a lead calls in its worker.

    Attributes:
        on_note: Function that sends a line for users to the client.
        should_stop: Function that returns true to end the run early.
    """

    on_note: Callable[[str], None]
    should_stop: Callable[[], bool]


@dataclass(eq=False)
class ClusterLeads(Generic[Result]):
    """One call of a function on each kind of machine.

    Attributes:
        address: Address of the scheduler.
        on_note: Called with lines for users: the machine's name, and the line.
        should_stop: Function that returns true to stop the leads, which still return results.
        timeout_s: Seconds to wait for the scheduler, and then for a first worker.
        patience_s: Seconds to wait for a worker to come back when all of a kind are gone.
        clock: Function that returns seconds.
    """

    address: str
    on_note: Callable[[Host, str], object] = silent
    should_stop: Callable[[], bool] = never
    timeout_s: float = 5.0
    patience_s: float = 120.0
    clock: Callable[[], float] = time.monotonic
    _session: str = field(default_factory=lambda: uuid4().hex)

    def run(
        self, function: Callable[..., Result], arguments: Callable[[Host], Sequence[object]]
    ) -> Iterator[tuple[Host, int, Result | IntarsiaError]]:
        """Yield the machine of each kind with its number of threads and result, as soon as it is there.

        Workers that join later with a machine of another kind are not used.

        Args:
            function: Function of a module that workers can import. It is called with `LeadCallbacks` and the
                arguments.
            arguments: Function that returns the arguments for a kind of machine.

        Raises:
            UsageError: `distributed` is not installed, no scheduler answers, there are no workers, or a
                worker has another version of Intarsia.
            ExecutionError: The workers cannot be prepared, or the scheduler is lost.
        """
        client = open_client(self.address, self.timeout_s)
        try:
            workers = ClusterWorkers(client, self.address, StationFacts(VERSION, this_host()))
            workers.expect_any(self.timeout_s)
            prepare_workers(client)
            yield from self._run_all(client, workers, function, arguments)
        finally:
            client.close()

    def _run_all(
        self,
        client: Client,
        workers: ClusterWorkers,
        function: Callable[..., Result],
        arguments: Callable[[Host], Sequence[object]],
    ) -> Iterator[tuple[Host, int, Result | IntarsiaError]]:
        threads = workers.threads_by_host()
        client.subscribe_topic(self._session, partial(self._note, {host.digest: host for host in threads}))
        waiting: dict[Host, Future[Result]] = {}
        try:
            for host in threads:
                facts = StationFacts(VERSION, host)
                call = (function, self._session, host.digest, *arguments(host))
                wanted = {facts.lead_resource: 1}
                waiting[host] = client.submit(_lead, *call, resources=wanted, pure=False)
            gone = _GoneWorkers(self.patience_s, self.clock)
            is_stopping = False
            while waiting:
                for host in [host for host, future in waiting.items() if future.done()]:
                    yield host, threads[host], self._result(client, waiting.pop(host))
                if client.status != "running":
                    raise self._lost()
                if not is_stopping and self.should_stop():
                    is_stopping = True
                    self._stop(client)
                for host in gone.hosts(workers, waiting):
                    waiting.pop(host).cancel()
                    yield host, threads[host], self._gone()
                time.sleep(_POLL_S)
        finally:
            self._stop(client)
            for future in waiting.values():
                future.cancel()

    def _result(self, client: Client, future: Future[Result]) -> Result | IntarsiaError:
        try:
            return future.result()
        except IntarsiaError as error:
            return error
        except Exception as error:
            if client.status != "running" or future.status in {"cancelled", "lost"}:
                raise self._lost() from error
            kind = type(error).__name__
            return ExecutionError(f"the worker that led the run failed: {kind}: {error}")

    def _stop(self, client: Client) -> None:
        with suppress(OSError):  # workers are lost: their leads are, too
            if client.status == "running":
                client.run(stop_leads, self._session, on_error="ignore")

    def _note(self, hosts: Mapping[str, Host], event: tuple[float, Any]) -> None:
        _, (digest, text) = event
        self.on_note(hosts[digest], text)

    def _lost(self) -> ExecutionError:
        return ExecutionError(
            f"the connection to the scheduler at {self.address} is lost",
            help="see that it runs and has workers, and run the same command again: "
            "what is in a shared database is kept",
        )

    def _gone(self) -> ExecutionError:
        return ExecutionError(
            f"all workers on such machines are gone, and none has come back in {self.patience_s:g} s",
            help="start one and run the same command again: what is in a shared database is kept",
        )


@dataclass(eq=False)
class _GoneWorkers:
    """Since when kinds of machines have no worker."""

    patience_s: float
    clock: Callable[[], float]
    _since: dict[Host, float] = field(default_factory=dict)
    _looked_at: float = 0.0

    def hosts(self, workers: ClusterWorkers, wanted: Mapping[Host, object]) -> list[Host]:
        """Return those of the wanted machines that have had no worker for too long."""
        now = self.clock()
        if now - self._looked_at < _LOOK_S:
            return []
        self._looked_at = now
        workers.look()
        there = workers.threads_by_host()
        self._since = {host: self._since.get(host, now) for host in wanted if host not in there}
        return [host for host, since in self._since.items() if now - since >= self.patience_s]


def stop_leads(session: str) -> None:
    """Stop the leads of a session that run in this worker, or begin here later."""
    _STOPS.setdefault(session, threading.Event()).set()


def _lead(function: Callable[..., Result], session: str, digest: str, *arguments: object) -> Result:
    """Run by a worker: call the function in a thread that does not count as one of the worker's."""
    from distributed import get_worker, secede

    worker = get_worker()
    stop = _STOPS.setdefault(session, threading.Event())
    secede()

    def send(text: str) -> None:
        worker.log_event(session, (digest, text))

    return function(LeadCallbacks(send, stop.is_set), *arguments)
