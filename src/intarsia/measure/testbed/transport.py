"""Transports: the transfer of workloads to an executor's processes, and the meaning of its failures."""

from __future__ import annotations

from concurrent.futures import CancelledError, Executor
from dataclasses import dataclass
from typing import Protocol

from intarsia.measure.candidate_task import Outcome
from intarsia.measure.testbed.parcel import SharedFolder
from intarsia.measure.testbed.station import retire, stop_sign
from intarsia.measure.testbed.station_session import StationSettings
from intarsia.measure.workload_folder import WorkloadFolder
from intarsia.support.errors import ExecutionError


class ConnectionLostError(ExecutionError):
    """The connection to an executor is lost, with all its tasks; `Transport.reconnect` may restore it."""


class Transport(Protocol):
    """Between a remote testbed and the processes of its executor."""

    @property
    def workers(self) -> int:
        """So many candidates are measured at a time, at least 1."""

    def parcel(self, folder: WorkloadFolder) -> object:
        """The first argument of a task: a `Parcel`, or what the executor makes one of on the way."""

    def bring(self, folder: WorkloadFolder, settings: StationSettings, candidates: int) -> int:
        """Begin to bring a workload to processes that are to measure candidates of it.

        Args:
            folder: Complete folder of the workload.
            settings: Settings of the session.
            candidates: Number of candidates.

        Returns:
            Number of candidates that can be measured at a time, where it has arrived; at least 1.
        """

    def note_missing(self, folder: WorkloadFolder, settings: StationSettings) -> None:
        """Note that a process does not have a workload that `parcel` has only named."""

    def forget(self, folder: WorkloadFolder) -> None:
        """Forget a workload, which no further task uses."""

    def verdict(self, error: BaseException) -> Outcome:
        """What a task that gave no result says of its candidate.

        Raises:
            ConnectionLostError: Nothing: all tasks of the executor are lost.
            IntarsiaError: Nothing: it is the executor that has failed.
        """

    def watch(self) -> None:
        """Called again and again while results are awaited.

        Raises:
            ConnectionLostError: None of this executor will come any more.
            IntarsiaError: None will come any more.
        """

    def reconnect(self) -> Executor:
        """Wait until the lost connection is back, and return the executor for new tasks.

        Raises:
            ExecutionError: It has not come back in time, or this transport has no connection to restore.
        """

    def stop_race(self, session: str, folder: WorkloadFolder, race: str) -> None:
        """End a race, wherever it is held."""

    def close(self, session: str) -> None:
        """End what a session has in the executor's processes, as far as they can be reached."""


@dataclass(frozen=True, slots=True)
class SharedFiles:
    """For executors with processes that share files: on this machine, or on a shared file system.

    Threads of this process end with the testbed; other processes end their session when they exit, so the
    executor is to be shut down.

    Attributes:
        workers: See Transport.
    """

    workers: int

    def parcel(self, folder: WorkloadFolder) -> object:
        """See Transport.parcel."""
        return SharedFolder(folder.path)

    def bring(self, folder: WorkloadFolder, settings: StationSettings, candidates: int) -> int:  # noqa: ARG002  # it is there
        """See Transport.bring."""
        return self.workers

    def note_missing(self, folder: WorkloadFolder, settings: StationSettings) -> None:
        """See Transport.note_missing; nothing is only named."""

    def forget(self, folder: WorkloadFolder) -> None:
        """See Transport.forget."""

    def verdict(self, error: BaseException) -> Outcome:
        """See Transport.verdict."""
        raise lost(error) from error

    def watch(self) -> None:
        """See Transport.watch; such an executor fails its futures by itself."""

    def reconnect(self) -> Executor:
        """See Transport.reconnect."""
        raise ExecutionError("processes that share files have no connection that could be restored")

    def stop_race(self, session: str, folder: WorkloadFolder, race: str) -> None:  # noqa: ARG002  # one folder for all
        """See Transport.stop_race."""
        stop_sign(folder.path, race).touch()

    def close(self, session: str) -> None:
        """See Transport.close."""
        retire(session)


def lost(error: BaseException) -> ExecutionError:
    """The error for people when an executor loses a task."""
    if isinstance(error, CancelledError):
        return ExecutionError("the executor has dropped a candidate that was to be measured")
    kind = type(error).__name__
    return ExecutionError(
        f"the executor has lost a candidate that was to be measured: {kind}: {error}",
        help="its processes need the same Python and Intarsia as this one, and must not be ended",
    )
