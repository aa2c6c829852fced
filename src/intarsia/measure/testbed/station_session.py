"""The folders and worker processes of one remote testbed in one process of its executor."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from intarsia.ir import IRModule
from intarsia.measure.measure_input import Workload
from intarsia.measure.testbed.limits import DEFAULT_LIMITS, TestbedLimits
from intarsia.measure.testbed.local import LocalTestbed
from intarsia.measure.testbed.parcel import Parcel
from intarsia.measure.testbed.run_folder import RunFolder
from intarsia.measure.worker_pool import TaskStoppedError
from intarsia.measure.workload_folder import WorkloadFolder
from intarsia.support.version import VERSION
from intarsia.target import Host


@dataclass(frozen=True, slots=True)
class StationSettings:
    """Settings of a remote testbed for the processes of its executor.

    Attributes:
        session: Name of the remote testbed; no two have the same.
        host: The machine that costs are to be of.
        limits: Limits of candidates.
        preload: Modules that workers import at the beginning, such as kinds of candidates.
        version: Version of Intarsia.
    """

    session: str
    host: Host
    limits: TestbedLimits = DEFAULT_LIMITS
    preload: tuple[str, ...] = ()
    version: str = VERSION


@dataclass(frozen=True, eq=False)
class _FolderWorkload(Workload):
    """A workload without its program, which only the workers need and read from the folder."""

    @cached_property
    def digest(self) -> str:
        """The folder's name, which has the true digest in it."""
        return self.name


@dataclass(eq=False)
class Lane(LocalTestbed):
    """A testbed that measures one candidate at a time: one worker builds, one runs."""

    def adopt(self, folder: WorkloadFolder) -> Workload:
        """The workload of a folder that is complete already; `prepare` is to find it."""
        workload = _FolderWorkload(IRModule({}), folder.path.name)
        self._workloads[workload.digest] = folder
        self._complete.add(workload.digest)
        return workload


class StationSession:
    """Lanes, made as they are needed: as many as there are threads that measure at the same time.

    Args:
        settings: Settings of the remote testbed.
        parent: Parent of the new folder; default: the system's folder for temporary files.
        clock: Function that returns seconds.
    """

    def __init__(
        self, settings: StationSettings, parent: Path | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._folder = RunFolder.open(parent)
        self._lock, self._unpacking = threading.Lock(), threading.Lock()
        self._idle: list[Lane] = []
        self._busy: list[Lane] = []
        self._used_at = clock()
        self._is_closed = False

    def touch(self) -> None:
        """Record a use of the session."""
        with self._lock:
            self._used_at = self._clock()

    @property
    def idle_seconds(self) -> float:
        """Seconds since the last measurement."""
        with self._lock:
            return 0.0 if self._busy else self._clock() - self._used_at

    def folder(self, parcel: Parcel) -> WorkloadFolder:
        """The workload of a parcel, which is unpacked once."""
        with self._unpacking:
            return parcel.open(self._folder.path)

    def unpacked(self, name: str) -> Path | None:
        """The folder of a workload that came in a parcel, if it has been unpacked here."""
        path = self._folder.path / name
        return path if path.exists() else None

    @contextmanager
    def lane(self) -> Iterator[Lane]:
        """A lane for this thread alone; after an exception it is not used again.

        Raises:
            TaskStoppedError: The session is over.
        """
        lane = self._take_lane()
        try:
            yield lane
        except BaseException:
            self._give_back(lane, is_sound=False)
            raise
        self._give_back(lane, is_sound=True)

    def close(self) -> None:
        """End all processes, whatever they do, and remove all files."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            lanes = (*self._idle, *self._busy)
            self._idle.clear()
        for lane in lanes:
            lane.close()
        self._folder.close()

    def _take_lane(self) -> Lane:
        with self._lock:
            if self._is_closed:
                raise TaskStoppedError("the session of the candidate is over")
            lane = self._idle.pop() if self._idle else self._open_lane()
            self._busy.append(lane)
            return lane

    def _open_lane(self) -> Lane:
        wanted = self._settings
        return Lane.open(
            wanted.host, workers=1, limits=wanted.limits, preload=wanted.preload, parent=self._folder.path
        )

    def _give_back(self, lane: Lane, *, is_sound: bool) -> None:
        with self._lock:
            if self._is_closed:
                return  # `close` has closed it, too
            self._busy.remove(lane)
            self._used_at = self._clock()
            if is_sound:
                self._idle.append(lane)
        if not is_sound:
            lane.close()
