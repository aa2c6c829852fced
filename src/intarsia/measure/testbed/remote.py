"""Measure candidates in the processes of an executor."""

from __future__ import annotations

import shutil
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final, Self, TypeVar
from uuid import uuid4

from intarsia.measure.arrays.constant_store import ConstantStore
from intarsia.measure.measure_input import MeasureInput, Workload
from intarsia.measure.race.limits import RaceLimits
from intarsia.measure.reference_task import add_reference
from intarsia.measure.runner import Raced
from intarsia.measure.testbed.limits import DEFAULT_LIMITS, TestbedLimits
from intarsia.measure.testbed.local import PRELOAD
from intarsia.measure.testbed.parcel import FolderMissingError
from intarsia.measure.testbed.run_folder import RunFolder
from intarsia.measure.testbed.station import MeasuredThere, SentCandidate, measure_there, race_there
from intarsia.measure.testbed.station_session import StationSettings
from intarsia.measure.testbed.testbed import Measured
from intarsia.measure.testbed.transport import ConnectionLostError, SharedFiles, Transport
from intarsia.measure.timing.host_lock import shared_host
from intarsia.measure.worker_pool import WorkerPool
from intarsia.measure.workload_folder import WorkloadFolder
from intarsia.support.closed_on_exit import ClosedOnExit
from intarsia.support.errors import IntarsiaError
from intarsia.target import Host

CANDIDATES_PER_LANE: Final = 16
"""Candidates per lane in one call of `measure`: at its end lanes wait for the slowest one."""

SUBMITTED_PER_LANE: Final = 2
"""Candidates per lane that the executor has at a time: one that runs, and one so that no lane waits for it.

Executors may assign a candidate to a process when it is submitted: then those of slow candidates, which come
last, would lie behind others.
"""

_POLL_S: Final = 0.5
_ARRIVAL_POLL_S: Final = 0.05
"""Seconds between two looks for processes to which a workload has been brought meanwhile."""

_RACE_POLL_S: Final = 0.1

Result = TypeVar("Result")


@dataclass(eq=False)
class RemoteTestbed(ClosedOnExit):
    """One task of the executor for each candidate; only workloads are prepared here.

    Attributes:
        executor: Any executor; its creator shuts it down, after the testbed is closed.
        settings: Settings for the processes of the executor.
        transport: Transport of the executor.
        pool: A worker that computes reference results.
        folder: Holds workloads; removed at the end.
        seed: Seed of random inputs.
        on_wait: Called with a line for users before a wait.
    """

    executor: Executor
    settings: StationSettings
    transport: Transport
    pool: WorkerPool
    folder: RunFolder
    seed: int = 0
    on_wait: Callable[[str], None] | None = None
    _workloads: dict[str, WorkloadFolder] = field(default_factory=dict)

    @classmethod
    def open(
        cls,
        executor: Executor,
        host: Host,
        transport: Transport | int,
        *,
        limits: TestbedLimits = DEFAULT_LIMITS,
        seed: int = 0,
        preload: tuple[str, ...] = (),
        on_wait: Callable[[str], None] | None = None,
        parent: Path | None = None,
    ) -> Self:
        """Make the folder and start the worker.

        Args:
            executor: Any executor with processes on machines such as this one.
            host: This machine, the value of `this_host()`.
            transport: Transport of the executor; or its number of parallel tasks, if its processes share the
                files of this one.
            limits: Limits of candidates.
            seed: Seed of random inputs.
            preload: Modules that workers import at the beginning, such as kinds of candidates.
            on_wait: Called with a line for users before a wait.
            parent: Parent of the new folder, such as on a shared file system; default: the system's folder
                for
                temporary files.
        """
        folder = RunFolder.open(parent)
        settings = StationSettings(uuid4().hex, host, limits, preload)
        carried = SharedFiles(transport) if isinstance(transport, int) else transport
        for name in ("workloads", "constants", "pools"):
            (folder.path / name).mkdir()
        pool = WorkerPool(1, preload=(*PRELOAD, *preload), folder=folder.path / "pools")
        return cls(executor, settings, carried, pool, folder, seed, on_wait)

    @cached_property
    def _constants(self) -> ConstantStore:
        return ConstantStore(self.folder.path / "constants")

    @property
    def host(self) -> Host:
        """See Testbed.host; processes of other machines refuse."""
        return self.settings.host

    @property
    def width(self) -> int:
        """See Testbed.width."""
        return CANDIDATES_PER_LANE * max(1, self.transport.workers)

    @property
    def lanes(self) -> int:
        """See Testbed.lanes."""
        return max(1, self.transport.workers)

    def prepare(self, workload: Workload) -> WorkloadFolder:
        """See Testbed.prepare; a worker computes the reference result, beside no timing of this host."""
        if workload.digest not in self._workloads:
            add, parent = partial(add_reference, self.pool), self.folder.path / "workloads"
            with shared_host(on_wait=self.on_wait):
                folder = WorkloadFolder.write(workload, parent, self.seed, add, self._constants)
            self._workloads[workload.digest] = folder
        return self._workloads[workload.digest]

    def forget(self, workload: Workload) -> None:
        """Remove the files of a workload that is not measured any more."""
        folder = self._workloads.pop(workload.digest, None)
        if folder is not None:
            self.transport.forget(folder)
            shutil.rmtree(folder.path, ignore_errors=True)

    def measure(self, inputs: Sequence[MeasureInput]) -> Generator[Measured, None, None]:
        """See Testbed.measure; closing it cancels what has not begun.

        When the connection to the executor is lost, what has no result yet is submitted again.
        """
        left = list(inputs)
        while left:
            try:
                yield from self._measure_connected(left)
            except ConnectionLostError:
                self.executor = self.transport.reconnect()

    def _measure_connected(self, left: list[MeasureInput]) -> Generator[Measured, None, None]:
        """Measure candidates as long as the connection lasts, and remove those that have a result."""
        waiting: dict[Future[MeasuredThere], MeasureInput] = {}
        try:
            queue = deque(left)
            counts = Counter(item.workload.digest for item in left)
            while queue or waiting:
                has_arrived = True
                while queue:
                    folder, lanes = self.prepare(queue[0].workload), self.lanes
                    ready = self.transport.bring(folder, self.settings, counts[queue[0].workload.digest])
                    has_arrived = ready >= lanes
                    if len(waiting) >= _most_submitted(len(queue), min(ready, lanes)):
                        break
                    item = queue.popleft()
                    waiting[self._submit(measure_there, folder, self.settings, _sent(item))] = item
                for future in self._done(waiting, _POLL_S if has_arrived else _ARRIVAL_POLL_S):
                    item = waiting.pop(future)
                    measured = self._measured(item, future)
                    if measured is None:
                        queue.appendleft(item)
                        continue
                    left.remove(item)
                    yield measured
        finally:
            for future in waiting:
                future.cancel()

    def race(self, racers: Mapping[str, MeasureInput], limits: RaceLimits) -> Raced:
        """See Testbed.race; until the end, `limits.on_turn` is called with the time, and 0 rounds.

        A race whose connection is lost is held again from its beginning.
        """
        if len({item.workload.digest for item in racers.values()}) != 1:
            raise ValueError("a race has candidates of one workload")
        folder = self.prepare(next(iter(racers.values())).workload)
        while True:
            try:
                return self._race_connected(folder, racers, limits)
            except FolderMissingError:
                self.transport.note_missing(folder, self.settings)
            except ConnectionLostError:
                self.executor = self.transport.reconnect()

    def _race_connected(
        self, folder: WorkloadFolder, racers: Mapping[str, MeasureInput], limits: RaceLimits
    ) -> Raced:
        race = uuid4().hex
        sent = {name: _sent(item) for name, item in racers.items()}
        future = self._submit(race_there, folder, self.settings, sent, limits.policy, limits.seconds, race)
        stop = partial(self.transport.stop_race, self.settings.session, folder, race)
        try:
            self._see_to_end(future, limits, stop)
            return future.result()
        except (IntarsiaError, FolderMissingError):
            raise
        except Exception as error:  # executors raise what they like
            outcome = self.transport.verdict(error)
            return Raced(None, dict.fromkeys(racers, outcome))
        finally:
            future.cancel()

    def artifact(self, measured: MeasureInput) -> Path | None:  # noqa: ARG002  # none is on this machine
        """See Testbed.artifact."""
        return None

    def close(self) -> None:
        """See Testbed.close; the executor itself stays."""
        with suppress(IntarsiaError):  # the call that met the error has raised it already
            self.transport.close(self.settings.session)
        self.pool.stop()
        self.folder.close()

    def _submit(
        self, function: Callable[..., Result], folder: WorkloadFolder, /, *arguments: object
    ) -> Future[Result]:
        try:
            return self.executor.submit(function, self.transport.parcel(folder), *arguments)
        except IntarsiaError:
            raise
        except Exception as error:  # as in `race`
            self.transport.verdict(error)
            raise

    def _done(self, futures: Iterable[Future[Result]], seconds: float) -> set[Future[Result]]:
        """Wait for results for some time, and return the futures that have ended."""
        wait(futures, seconds, FIRST_COMPLETED)
        done = {future for future in futures if future.done()}  # `wait` misses some cancelled ones
        if not done:
            self.transport.watch()
        return done

    def _measured(self, item: MeasureInput, future: Future[MeasuredThere]) -> Measured | None:
        """Return the result of a candidate; None if it came to a process without its workload."""
        try:
            there = future.result()
        except FolderMissingError:
            self.transport.note_missing(self.prepare(item.workload), self.settings)
            return None
        except IntarsiaError:
            raise
        except Exception as error:  # as in `race`
            return Measured(item, self.transport.verdict(error), 0.0)
        return Measured(item, there.outcome, there.seconds)

    def _see_to_end(self, future: Future[Any], limits: RaceLimits, stop: Callable[[], None]) -> None:
        begun, is_stopping = limits.clock(), False
        while not future.done():
            wait([future], _RACE_POLL_S)
            self.transport.watch()
            limits.on_turn(0, limits.clock() - begun)
            if not is_stopping and limits.should_stop():
                is_stopping = True
                stop()


def _most_submitted(left: int, lanes: int) -> int:
    """Return the number of candidates that the executor may have at a time.

    The last ones wait here for a free lane: one that lay behind a slow candidate would hold up the end.

    Args:
        left: Number of candidates that have not been submitted.
        lanes: Number of lanes that have the workload.
    """
    return lanes if left <= lanes else SUBMITTED_PER_LANE * lanes


def _sent(item: MeasureInput) -> SentCandidate:
    return SentCandidate(item.target, item.candidate)
