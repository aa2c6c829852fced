"""A pool of worker processes in which a task can harm only itself."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from concurrent.futures import Executor, Future
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import ParamSpec, TypeVar

from intarsia.measure.worker_pool.dispatcher import Dispatcher
from intarsia.measure.worker_pool.task import Job, Task

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class WorkerPool(Executor):
    """Runs each task in a process of a fixed number, one at a time each, within its limits.

    A task that raises, crashes, exits, runs or grows past its limit, closes files or kills processes around
    it fails with a `TaskFailedError` of its own; its worker is replaced and no other task is touched. When
    the future of a task that was ended is done, nothing of it runs any more. What a task leaves behind that
    ends by itself (threads, child processes, a changed folder) stays until its worker is replaced;
    `max_tasks=1` gives each task a fresh one.

    Args:
        workers: Number of parallel tasks.
        timeout_s: Time limit of tasks that come by `submit` and `map`, in seconds, or None.
        memory_bytes: Memory limit of these, or None.
        preload: Modules imported once for all pools of the program with the same ones, and from which workers
            are forked. They must not start threads that a fork would break, which rules out inference
            engines.
        max_tasks: Number of tasks after which a worker is replaced; None for no limit.
        folder: Parent of the folder for temporary files; default: the system's folder for these.

    Raises:
        ValueError: There is to be no worker, or no task for a worker.
    """

    def __init__(
        self,
        workers: int,
        *,
        timeout_s: float | None = None,
        memory_bytes: int | None = None,
        preload: tuple[str, ...] = (),
        max_tasks: int | None = None,
        folder: Path | None = None,
    ) -> None:
        if workers < 1 or (max_tasks is not None and max_tasks < 1):
            raise ValueError(f"a pool needs a worker and a task for it, not {workers} and {max_tasks}")
        self._timeout_s, self._memory_bytes = timeout_s, memory_bytes
        self._numbers = count(1)
        self._dispatcher = Dispatcher(workers, preload, max_tasks, folder)
        weakref.finalize(self, self._dispatcher.forget).atexit = False

    def submit(
        self, fn: Callable[Parameters, Result], /, *args: Parameters.args, **kwargs: Parameters.kwargs
    ) -> Future[Result]:
        """Run a function of a module within the limits of the pool.

        Raises:
            UsageError: Workers cannot find the function, or an argument cannot be pickled.
            RuntimeError: The pool is shut down.
            PoolBrokenError: No worker can be started.
        """
        return self.submit_task(Task(fn, args, kwargs, self._timeout_s, self._memory_bytes))

    def submit_task(self, task: Task[Result]) -> Future[Result]:
        """Run a task within its own limits; raises as `submit` does."""
        future: Future[Result] = Future()
        call = task.pickled()
        self._dispatcher.submit(Job(next(self._numbers), call, future, task.timeout_s, task.memory_bytes))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more tasks; end the workers when those taken are done.

        Args:
            wait: Whether to wait for that.
            cancel_futures: Whether tasks that no worker has begun are cancelled.
        """
        self._dispatcher.finish_jobs(cancel_pending=cancel_futures)
        if wait:
            self._dispatcher.join()

    def stop(self) -> None:
        """End the workers now: tasks that wait are cancelled, those that run fail with `TaskStoppedError`."""
        self._dispatcher.stop()
        self._dispatcher.join()

    def worker_pids(self) -> tuple[int, ...]:
        """Process ids of the workers of the moment."""
        return self._dispatcher.worker_pids()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait for all tasks; after an exception, Ctrl-C among them, stop them instead."""
        if kind is None:
            self.shutdown()
        else:
            self.stop()
