"""Worker processes of this machine: several build side by side, and one runs what was built."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Self, TypeVar

from intarsia.measure.candidate_task import Outcome
from intarsia.measure.measure_result import MeasureError
from intarsia.measure.operator_modules import with_operators
from intarsia.measure.task_outcome import task_outcome
from intarsia.measure.timing.host_lock import exclusive_host, shared_host
from intarsia.measure.worker_pool import Task, WorkerPool

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class TaskLimits:
    """Limits of a build or of a run.

    Attributes:
        seconds: Time that it may take.
        memory_bytes: Memory that it may add to its worker, or None.
    """

    seconds: float
    memory_bytes: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Workers:
    """Builds what is measured in several processes at a time, and runs it in one, while nothing is built.

    A task that raises, crashes, hangs or takes too much memory ends as an Outcome with the reason; no other
    task is touched.

    Attributes:
        builders: Processes that build.
        runner: Pool of the one process that runs: what it has loaded stays loaded between runs.
        on_wait: Called, with the process that holds the host, if another process builds or times; or None.
    """

    builders: WorkerPool
    runner: WorkerPool
    on_wait: Callable[[str], None] | None = None

    @classmethod
    def start(
        cls,
        builders: int,
        folder: Path,
        preload: tuple[str, ...] = (),
        on_wait: Callable[[str], None] | None = None,
    ) -> Self:
        """Start workers.

        Args:
            builders: Number of builds at a time.
            folder: Folder for their temporary files, which is made.
            preload: Modules that workers are forked with.
            on_wait: Value of the attribute `on_wait`.
        """
        folder.mkdir()
        pool = partial(WorkerPool, preload=preload, folder=folder)
        return cls(pool(builders), pool(1), on_wait)

    def building(self) -> AbstractContextManager[None]:
        """Return a block in which this process builds; it waits until no other process times anything."""
        return shared_host(on_wait=self.on_wait)

    def running(self) -> AbstractContextManager[None]:
        """Return a block in which this process alone runs; it waits until no other one builds or times."""
        return exclusive_host(on_wait=self.on_wait)

    def start_build(
        self, function: Callable[..., Result], arguments: tuple[object, ...], limits: TaskLimits
    ) -> Future[Result]:
        """Start a build; pass the future to `built`.

        Args:
            function: A function of a module, where workers find it.
            arguments: Its arguments.
            limits: Limits of the build.
        """
        return self.builders.submit_task(_task(function, arguments, limits))

    @staticmethod
    def built(future: Future[Result]) -> Result | Outcome:
        """Wait for a build, and return what it has returned, or how its worker has failed.

        Raises:
            TaskStoppedError, CancelledError, PoolBrokenError, OutputError: See `task_outcome`.
        """
        return task_outcome(future, MeasureError.BUILD_TIMEOUT)

    def run(
        self, function: Callable[..., Result], arguments: tuple[object, ...], limits: TaskLimits
    ) -> Result | Outcome:
        """Run something, and return what it has returned, or how its worker has failed.

        Call it in a block of `running`.

        Args:
            function: A function of a module, where the worker finds it.
            arguments: Its arguments.
            limits: Limits of the run.

        Raises:
            TaskStoppedError, CancelledError, PoolBrokenError, OutputError: See `task_outcome`.
        """
        future = self.runner.submit_task(_task(function, arguments, limits))
        return task_outcome(future, MeasureError.RUN_TIMEOUT)

    def stop(self) -> None:
        """End all workers, whatever they do."""
        self.builders.stop()
        self.runner.stop()


def _task(function: Callable[..., Result], arguments: tuple[object, ...], limits: TaskLimits) -> Task[Result]:
    called, given = with_operators(function, arguments)
    return Task(called, given, timeout_s=limits.seconds, memory_bytes=limits.memory_bytes)
