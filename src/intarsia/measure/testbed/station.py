"""The tasks of an executor's processes, which measure candidates there as on any machine.

The functions of this module are the tasks that a remote testbed submits. They work in processes of their
own (a `LocalTestbed` each), so that a candidate that crashes never takes the executor's process with it, and
under the lock of the host, so that processes and threads beside this one do not disturb a timing.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Final, TypeAlias

from intarsia.measure.candidate_task import Outcome
from intarsia.measure.measure_input import Candidate, MeasureInput
from intarsia.measure.race.limits import RaceLimits
from intarsia.measure.race.policy import RacePolicy
from intarsia.measure.runner import Raced
from intarsia.measure.testbed.parcel import PackedConstant, PackedFolder, Parcel, join_parcel
from intarsia.measure.testbed.station_session import StationSession, StationSettings
from intarsia.measure.worker_pool import TaskStoppedError
from intarsia.support import version
from intarsia.support.errors import UsageError
from intarsia.target import Host, Target
from intarsia.toolchain.this_host import this_host

ABANDONED_S: Final = 900.0
"""Idle seconds after which a session counts as dead, and is closed when another one begins."""

_BEFORE_EXIT: Final = 10
"""Priority of the finalizer: those of at least 0 run in every process of `multiprocessing`, too."""


SentParcel: TypeAlias = Parcel | Sequence[PackedFolder | PackedConstant]
"""A parcel, or its parts that the executor has brought apart: the folder, and its constants."""


@dataclass(frozen=True, slots=True)
class StationFacts:
    """The version and machine of a process of an executor.

    Attributes:
        version: Version of Intarsia.
        host: The machine, as measurements know it.
    """

    version: str
    host: Host

    @property
    def resource(self) -> str:
        """Name of what such processes offer; equal names measure alike."""
        return f"intarsia-{self.version}-host-{self.host.digest[:16]}"

    @property
    def lead_resource(self) -> str:
        """Name of what each such process offers once: to lead a run on processes of its kind."""
        return f"{self.resource}-lead"


@dataclass(frozen=True, slots=True)
class SentCandidate:
    """A candidate without its workload.

    Attributes:
        target: See MeasureInput.
        candidate: See MeasureInput.
    """

    target: Target
    candidate: Candidate


@dataclass(frozen=True, slots=True)
class MeasuredThere:
    """The result of a candidate from a remote process.

    Attributes:
        outcome: Outcome of the measurement.
        seconds: Time that building and running took in all.
    """

    outcome: Outcome
    seconds: float


class Station:
    """The sessions of a process, for any number of threads.

    Args:
        clock: Function that returns seconds.

    Attributes:
        parent: Parent of new folders; None: the system's folder for temporary files.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.begin_anew()

    def begin_anew(self) -> None:
        """Forget everything: a forked process has no right to the processes of its parent."""
        self.parent: Path | None = None
        self._lock = threading.Lock()
        self._sessions: dict[str, StationSession] = {}
        self._retired: set[str] = set()
        self._finalizer: Finalize | None = None

    def session(self, settings: StationSettings) -> StationSession:
        """The session of that name, which begins with the first call.

        Raises:
            UsageError: This is not the machine, or not the version of Intarsia, that is wanted.
            TaskStoppedError: The session is over.
        """
        _check(settings)
        with self._lock:
            if settings.session in self._retired:
                raise TaskStoppedError("the session of the candidate is over")
            self._finalizer = self._finalizer or Finalize(None, self.close, exitpriority=_BEFORE_EXIT)
            if settings.session not in self._sessions:
                self._sessions[settings.session] = StationSession(settings, self.parent, self._clock)
            session = self._sessions[settings.session]
            session.touch()
            abandoned = [
                self._sessions.pop(name)
                for name, other in list(self._sessions.items())
                if other is not session and other.idle_seconds > ABANDONED_S
            ]
        for other in abandoned:
            other.close()
        return session

    def running(self, name: str) -> StationSession | None:
        """The session of that name, if it has begun and is not over."""
        return self._sessions.get(name)

    def retire(self, name: str) -> None:
        """End a session and all it does; what comes late for it is refused."""
        with self._lock:
            self._retired.add(name)
            session = self._sessions.pop(name, None)
        if session is not None:
            session.close()

    def close(self) -> None:
        """End all sessions."""
        for name in list(self._sessions):
            self.retire(name)


STATION = Station()
"""The station of this process."""


def facts() -> StationFacts:
    """Return the version and machine of this process."""
    return StationFacts(version.VERSION, this_host())


def unpack_there(parcel: SentParcel, settings: StationSettings) -> None:
    """Unpack a workload, for candidates that will only name it.

    Raises:
        UsageError: This is not the machine, or not the version of Intarsia, that is wanted.
        OutputError: The folder cannot be written.
    """
    STATION.session(settings).folder(join_parcel(parcel))


def has_folder(session: str, workload: str) -> bool:
    """Return whether a session of this process has a folder.

    Args:
        session: Name of the session.
        workload: Name of the workload's folder.
    """
    running = STATION.running(session)
    return running is not None and running.unpacked(workload) is not None


def measure_there(parcel: SentParcel, settings: StationSettings, sent: SentCandidate) -> MeasuredThere:
    """Build and run a candidate.

    Raises:
        FolderMissingError: The workload is only named, and has not been brought here.
        UsageError: This is not the machine, or not the version of Intarsia, that is wanted.
        IntarsiaError: As `Testbed.measure`.
    """
    session = STATION.session(settings)
    folder = session.folder(join_parcel(parcel))
    with session.lane() as lane:
        item = MeasureInput(lane.adopt(folder), sent.target, sent.candidate)
        (measured,) = lane.measure([item])
    return MeasuredThere(measured.outcome, measured.seconds)


def race_there(
    parcel: SentParcel,
    settings: StationSettings,
    racers: Mapping[str, SentCandidate],
    policy: RacePolicy,
    seconds: float,
    race: str,
) -> Raced:
    """Run a whole race; all candidates are timed in one process.

    Args:
        parcel: Workload of the candidates.
        settings: Settings of the session.
        racers: Candidates by name.
        policy: See RaceLimits.
        seconds: See RaceLimits.
        race: Name of the race, for `stop_race`.

    Raises:
        FolderMissingError: The workload is only named, and has not been brought here.
        UsageError: This is not the machine, or not the version of Intarsia, that is wanted.
        IntarsiaError: As `Testbed.race`.
    """
    session = STATION.session(settings)
    folder = session.folder(join_parcel(parcel))
    limits = RaceLimits(policy, seconds, should_stop=stop_sign(folder.path, race).exists)
    with session.lane() as lane:
        workload = lane.adopt(folder)
        inputs = {name: MeasureInput(workload, sent.target, sent.candidate) for name, sent in racers.items()}
        return lane.race(inputs, limits)


def stop_race(session: str, workload: str, race: str) -> None:
    """End a race of this process, if it is held here.

    Args:
        session: Name of the session.
        workload: Name of the workload's folder.
        race: Name of the race.
    """
    found = STATION.running(session)
    folder = None if found is None else found.unpacked(workload)
    if folder is not None:
        stop_sign(folder, race).touch()


def stop_sign(folder: Path, race: str) -> Path:
    """Return the path of the file that stops a race: the race looks for it after every turn."""
    return folder / f"stop-{race}"


def retire(session: str) -> None:
    """End what a remote testbed has in this process."""
    STATION.retire(session)


def _check(settings: StationSettings) -> None:
    here = facts()
    if here.version != settings.version:
        raise UsageError(
            f"the executor's processes have Intarsia {here.version}, this one {settings.version}",
            help="install the same version on both sides",
        )
    differences = settings.host.differences(here.host)
    if here.host.digest != settings.host.digest:
        raise UsageError(
            f"the executor's processes run on another kind of machine: {'; '.join(differences)}",
            help="costs of another machine are never used: choose processes on machines such as this one",
        )


os.register_at_fork(after_in_child=STATION.begin_anew)
