"""A Dask cluster as the executor; only `cluster_leads` speaks to `distributed` beside this module.

Workers report the fingerprint of their machine as a resource ("intarsia-<version>-host-<digest>"), which a
plugin gives to those that are there and to those that join later. Tasks ask for that resource, so that
only machines such as this one get them. Dask gives tasks of a lost worker to others. When the scheduler is
lost, its tasks are lost with it: they are submitted again to the one that answers at the same address.
"""

from __future__ import annotations

import asyncio
import logging
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Executor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from intarsia.measure.candidate_task import Outcome
from intarsia.measure.measure_result import MeasureError
from intarsia.measure.testbed.cluster_workers import ClusterWorkers
from intarsia.measure.testbed.folder_arrivals import FolderArrivals
from intarsia.measure.testbed.limits import DEFAULT_LIMITS, TestbedLimits
from intarsia.measure.testbed.parcel import PackedConstant, PackedFolder
from intarsia.measure.testbed.remote import RemoteTestbed
from intarsia.measure.testbed.station import StationFacts, retire, stop_race
from intarsia.measure.testbed.station_session import StationSettings
from intarsia.measure.testbed.transport import ConnectionLostError, lost
from intarsia.measure.workload_folder import WorkloadFolder
from intarsia.support.errors import ExecutionError, UsageError
from intarsia.support.version import VERSION
from intarsia.target import Host

if TYPE_CHECKING:
    from distributed import Client, Future
    from distributed.diagnostics.plugin import WorkerPlugin

INSTALL: Final = "pip install 'intarsia[distributed]'"

_PLUGIN: Final = "intarsia"
_LOOK_S: Final = 1.0
"""Time between two looks at the workers while results are awaited, and between two attempts to reconnect."""

_CLOSE_S: Final = 2.0
"""Seconds that a client without a scheduler may take to close."""


def connect(
    address: str,
    host: Host,
    *,
    limits: TestbedLimits = DEFAULT_LIMITS,
    seed: int = 0,
    preload: tuple[str, ...] = (),
    on_note: Callable[[str], None] | None = None,
    timeout_s: float = 5.0,
    patience_s: float = 120.0,
) -> RemoteTestbed:
    """Open a testbed of the workers of a cluster that run on machines such as this one.

    Args:
        address: Address of the scheduler, such as "tcp://10.0.0.1:8786".
        host: This machine, the value of `this_host()`.
        limits: Limits of candidates.
        seed: Seed of random inputs.
        preload: Modules that the processes of candidates import, such as kinds of candidates.
        on_note: Called with a line for users before a wait.
        timeout_s: Seconds to wait for the scheduler, and then for a first worker.
        patience_s: Seconds to wait for a worker to come back when all are gone, or for the scheduler.

    Raises:
        UsageError: `distributed` is not installed, no scheduler answers at the address, no worker has this
            machine's fingerprint, or a worker has another version of Intarsia.
        ExecutionError: The workers cannot be prepared.
    """
    cluster = _Cluster(address, StationFacts(VERSION, host), on_note, timeout_s, patience_s)
    executor = cluster.open()
    try:
        return RemoteTestbed.open(
            executor, host, cluster, limits=limits, seed=seed, preload=preload, on_wait=on_note
        )
    except BaseException:
        cluster.client.close()
        raise


@dataclass(eq=False)
class _Cluster:
    """See Transport.

    Attributes:
        address: Address of the scheduler.
        wanted: Required facts of workers.
        on_note: Called with a line for users before a wait.
        timeout_s: Seconds to wait for the scheduler, and then for a first worker.
        patience_s: Seconds to wait for a worker to come back when all are gone, or for the scheduler.
        clock: Function that returns seconds.
    """

    address: str
    wanted: StationFacts
    on_note: Callable[[str], None] | None
    timeout_s: float
    patience_s: float
    clock: Callable[[], float] = time.monotonic
    client: Client = field(init=False)
    """Client of the scheduler."""
    present: ClusterWorkers = field(init=False)
    """The workers."""
    _looked_at: float = 0.0
    _gone_since: float | None = None
    _parcels: dict[str, list[Future[Any]]] = field(default_factory=dict)
    """By the name of the folder: the folder without constants, then its large constants."""
    _arrivals: FolderArrivals = field(init=False)
    _digests: dict[Path, str] = field(default_factory=dict)
    """Digests of constants by their folders."""

    def open(self) -> Executor:
        """Connect to the scheduler, and return an executor of the workers that measure as this machine does.

        Raises:
            UsageError: `distributed` is not installed, no scheduler answers at the address, no worker has
                this machine's fingerprint, or a worker has another version of Intarsia.
            ExecutionError: The workers cannot be prepared.
        """
        client = open_client(self.address, self.timeout_s)
        try:
            workers = ClusterWorkers(client, self.address, self.wanted)
            workers.expect(self.timeout_s)
            prepare_workers(client)
        except BaseException:
            client.close()
            raise
        self.client, self.present, self._gone_since = client, workers, None
        self._arrivals = FolderArrivals(client)
        executor: Executor = client.get_executor(pure=False, resources={self.wanted.resource: 1})
        return executor

    def reconnect(self) -> Executor:
        """See Transport.reconnect; a restarted scheduler has no tasks, and its workers no parcels."""
        if self.on_note is not None:
            self.on_note(
                f"the connection to the scheduler at {self.address} is lost: "
                f"waiting {self.patience_s:g} s for it to come back"
            )
        self.client.close(timeout=_CLOSE_S)
        self._parcels.clear()
        until = self.clock() + self.patience_s
        while True:
            try:
                return self.open()
            except (UsageError, ExecutionError) as error:
                if self.clock() >= until:
                    raise ExecutionError(
                        f"the connection to the scheduler at {self.address} is lost, and has not come back "
                        f"in {self.patience_s:g} s: {error.problem}",
                        help="see that it runs and has workers, and run the same command again: "
                        "what has been measured is kept",
                    ) from error
            time.sleep(_LOOK_S)

    @property
    def workers(self) -> int:
        """See Transport.workers."""
        self._look(self.clock())
        return self.present.fit_threads

    def parcel(self, folder: WorkloadFolder) -> object:
        """See Transport.parcel: the name of a folder that all workers have, else its parts."""
        arrived = self._arrivals.arrived(folder.path.name, self.present.fit)
        return self._parts(folder) if arrived is None else arrived

    def bring(self, folder: WorkloadFolder, settings: StationSettings, candidates: int) -> int:
        """See Transport.bring; a single candidate comes with its workload."""
        self._look(self.clock())
        name, workers = folder.path.name, self.present.fit
        if candidates > 1:
            self._arrivals.bring(name, self._parts(folder), settings, workers, candidates)
        return max(1, self._arrivals.threads(name, workers))

    def note_missing(self, folder: WorkloadFolder, settings: StationSettings) -> None:
        """See Transport.note_missing."""
        self._arrivals.check(folder.path.name, settings.session)
        self.present.look()

    def _parts(self, folder: WorkloadFolder) -> Sequence[Future[Any]]:
        """Return the folder and each of its large constants, as results of tasks.

        Dask hands such results from worker to worker, so that each worker gets a constant once, for all
        workloads that share it. It makes them anew when the workers that have them are lost (what `scatter`
        has spread is gone then).
        """
        name = folder.path.name
        if name not in self._parcels or not all(map(_is_alive, self._parcels[name])):
            packed = PackedFolder.pack(folder, self._packed)
            constants = [self._send(item, _constant_key(item.digest)) for item in packed.constants]
            bare = replace(packed, constants=())
            self._parcels[name] = [self._send(bare, f"intarsia-workload-{uuid4().hex}"), *constants]
        return self._parcels[name]

    def forget(self, folder: WorkloadFolder) -> None:
        """See Transport.forget; constants of other workloads stay."""
        self._arrivals.forget(folder.path.name)
        self._parcels.pop(folder.path.name, None)

    def _packed(self, path: Path) -> PackedConstant:
        """Return the constant in a folder; without its files if the cluster has it already."""
        digest = self._digests.get(path)
        if digest is not None and self._sent(_constant_key(digest)) is not None:
            return PackedConstant(digest, ())
        constant = PackedConstant.pack(path)
        self._digests[path] = constant.digest
        return constant

    def _sent(self, key: str) -> Future[Any] | None:
        """Return the result of a task that was submitted before, if it is not lost."""
        futures = (future for parts in self._parcels.values() for future in parts)
        return next((future for future in futures if future.key == key and _is_alive(future)), None)

    def _send(self, content: object, key: str) -> Future[Any]:
        """Return the result of a task that has the content; one of this key that exists already is taken."""
        if sent := self._sent(key):
            return sent
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sending large graph")  # it is sent once
            return self.client.submit(_same, content, key=key, resources={self.wanted.resource: 1})

    def verdict(self, error: BaseException) -> Outcome:
        """See Transport.verdict; what ends one worker after the other has crashed."""
        from distributed import KilledWorker

        parcels = {future.key for parts in self._parcels.values() for future in parts}
        if isinstance(error, KilledWorker) and error.task not in parcels:
            times, last = error.allowed_failures + 1, error.last_worker.address
            message = f"the worker that measured it ended, {times} times in a row: the last was {last}"
            return Outcome(MeasureError.CRASH, message)
        if isinstance(error, CancelledError) or self.client.status != "running":
            raise self._scheduler_lost() from error
        raise lost(error) from error

    def watch(self) -> None:
        """See Transport.watch."""
        if self.client.status != "running":
            raise self._scheduler_lost()
        now = self.clock()
        self._look(now)
        if self.present.fit_threads:
            self._gone_since = None
            return
        if self._gone_since is None:
            self._gone_since = now
            if self.on_note is not None:
                self.on_note(
                    f"all workers of the cluster are gone: waiting {self.patience_s:g} s for one to come back"
                )
        if now - self._gone_since >= self.patience_s:
            raise ExecutionError(
                f"all workers of the cluster at {self.address} are gone, and none has come back in "
                f"{self.patience_s:g} s",
                help=f"start one (dask worker {self.address}) and run the same command again: "
                "what has been measured is kept",
            )

    def stop_race(self, session: str, folder: WorkloadFolder, race: str) -> None:
        """See Transport.stop_race."""
        self.client.run(stop_race, session, folder.path.name, race, on_error="ignore")

    def close(self, session: str) -> None:
        """See Transport.close."""
        self._parcels.clear()
        if self.client.status == "running" and self.workers:
            self.client.run(_leave, session, wait=False, on_error="ignore")
        self.client.close()

    def _look(self, now: float) -> None:
        if now - self._looked_at >= _LOOK_S:
            self._looked_at = now
            self.present.look()

    def _scheduler_lost(self) -> ConnectionLostError:
        return ConnectionLostError(f"the connection to the scheduler at {self.address} is lost")


def prepare_workers(client: Client) -> None:
    """Make the workers of a cluster, and those that join later, report their fingerprints.

    Raises:
        ExecutionError: A worker cannot be prepared.
    """
    try:
        client.register_plugin(_plugin(), name=_PLUGIN)
    except Exception as error:  # of the workers: whatever their Python raises
        kind = type(error).__name__
        raise ExecutionError(f"a worker cannot be prepared for measuring: {kind}: {error}") from error


def open_client(address: str, timeout_s: float) -> Client:
    """Connect to a scheduler.

    Raises:
        UsageError: `distributed` is not installed, or no scheduler answers at the address.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise UsageError(f"a cluster needs the package distributed: {error}", help=INSTALL) from error
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # a lost scheduler is an error of ours
    try:
        return Client(address, timeout=timeout_s, set_as_default=False)
    except ValueError as error:
        raise UsageError(
            f'"{address}" is not the address of a scheduler: {error}', help='such as "tcp://10.0.0.1:8786"'
        ) from error
    except (OSError, TimeoutError) as error:
        raise UsageError(
            f"no Dask scheduler answers at {address} within {timeout_s:g} s",
            help='start one with "dask scheduler", which prints its address, and workers with '
            '"dask worker ADDRESS"; or see that no firewall is between',
        ) from error


def _same(content: object) -> object:
    """Return the argument, as a task."""
    return content


def _constant_key(digest: str) -> str:
    return f"intarsia-constant-{digest}"


def _is_alive(future: Future[Any]) -> bool:
    return future.status in {"pending", "finished"}


async def _leave(session: str) -> None:
    """Run by workers, in the thread that must go on answering the scheduler."""
    await asyncio.to_thread(retire, session)


def _plugin() -> WorkerPlugin:
    """Return the plugin by which workers report their fingerprints, and use folders that Dask removes.

    The class is defined here because Dask then sends it by value: on the machines of a cluster that do not
    have Intarsia, workers must still start.
    """
    from distributed.diagnostics.plugin import WorkerPlugin

    class TellFingerprint(WorkerPlugin):
        async def setup(self, worker) -> None:  # type: ignore[no-untyped-def]
            import asyncio
            from pathlib import Path

            from distributed.core import Status

            try:
                from intarsia.measure.testbed import station
            except ImportError:
                return
            station.STATION.parent = Path(worker.local_directory)
            here = await asyncio.to_thread(station.facts)
            if here.resource in worker.state.total_resources:
                return
            await worker.set_resources(**{here.resource: worker.state.nthreads, here.lead_resource: 1})
            if worker.status == Status.running:  # tasks that wait for a worker are looked at again then only
                worker.status = Status.paused
                worker.status = Status.running

    return TellFingerprint()
