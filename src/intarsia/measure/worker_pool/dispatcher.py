"""The one thread of a pool: gives jobs to idle workers, and sets the results of their futures."""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import selectors
import shutil
import socket
import tempfile
import threading
import time
from collections import deque
from pathlib import Path

from intarsia.measure.worker_pool.failure import (
    PoolBrokenError,
    TaskFailedError,
    TaskRaisedError,
    TaskStoppedError,
)
from intarsia.measure.worker_pool.fork_server_process import ForkServerProcess
from intarsia.measure.worker_pool.messages import Returned
from intarsia.measure.worker_pool.slot import Equipment, Slot, SlotState
from intarsia.measure.worker_pool.task import Job

_ENDED_WITHIN_S = 5.0
"""Seconds in which a closed slot must end before it is killed."""


class Dispatcher:
    """Runs jobs on as many slots as the pool has workers.

    Args:
        workers: Number of parallel jobs.
        preload: Modules that are imported once, from which keepers and workers are forked.
        max_tasks: Number of jobs after which a worker is replaced; None for no limit.
        folder: Parent of the folder for temporary files; None: the system's folder for these.
    """

    def __init__(
        self, workers: int, preload: tuple[str, ...], max_tasks: int | None, folder: Path | None = None
    ) -> None:
        self._workers = workers
        self._lock = threading.Lock()
        self._pending: deque[Job] = deque()
        self._is_finishing = self._is_stopping = False
        self._problem = ""
        self._slots: list[Slot] = []
        self._woken, self._waker = socket.socketpair()
        self._woken.setblocking(False)
        self._waker.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._woken, selectors.EVENT_READ, self._on_woken)
        self._temporary = tempfile.mkdtemp(prefix="intarsia-pool-", dir=folder)
        self._server = ForkServerProcess.shared(preload)
        self._equipment = Equipment(self, self._selector, self._server, self._temporary, max_tasks)
        self._thread = threading.Thread(target=self._run, name="intarsia-worker-pool", daemon=True)
        self._thread.start()
        self._owner = os.getpid()
        atexit.register(self._at_exit)

    def submit(self, job: Job) -> None:
        """Take a job.

        Raises:
            RuntimeError: The pool is shut down.
            PoolBrokenError: No worker can be started.
        """
        with self._lock:
            if self._problem:
                raise self._broken()
            if self._is_finishing:
                raise RuntimeError("the pool is shut down and takes no more tasks")
            self._pending.append(job)
        self._wake()

    def finish_jobs(self, *, cancel_pending: bool) -> None:
        """Take no more jobs, and end when those taken are done; jobs that wait may be cancelled."""
        with self._lock:
            self._is_finishing = True
            pending = tuple(self._pending)
        for job in pending if cancel_pending else ():
            job.future.cancel()  # `set_running_or_notify_cancel` notifies its waiters later
        self._wake()

    def stop(self) -> None:
        """End all workers now, whatever they do."""
        self._is_stopping = True
        self.finish_jobs(cancel_pending=True)

    def forget(self) -> None:
        """End when the accepted jobs are done, since the pool was garbage collected."""
        if os.getpid() == self._owner:
            self.finish_jobs(cancel_pending=False)

    def join(self) -> None:
        """Wait until all workers are gone; not so in a callback of a future, which the thread itself runs."""
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def finish(self, job: Job, outcome: Returned | TaskFailedError) -> None:
        """Set the result or exception of a job's future."""
        if isinstance(outcome, TaskFailedError):
            job.future.set_exception(outcome)
            return
        try:
            value = pickle.loads(outcome.value)  # noqa: S301 -- tasks are the user's own functions
        except Exception as error:  # unpickling runs code of the value's class
            job.future.set_exception(_unreadable(error))
        else:
            job.future.set_result(value)

    def requeue(self, job: Job) -> None:
        """Run a job that was not begun before all others."""
        with self._lock:
            self._pending.appendleft(job)

    def give_up(self, problem: str) -> None:
        """Fail all jobs: no worker can be started."""
        with self._lock:
            self._problem = self._problem or problem
            self._is_finishing = self._is_stopping = True

    def worker_pids(self) -> tuple[int, ...]:
        """Process ids of the workers of the moment."""
        return tuple(slot.worker for slot in self._slots if slot.worker)

    def _run(self) -> None:
        try:
            while len(self._slots) < self._workers:
                self._slots.append(Slot(self._equipment))
            while not self._is_over():
                self._assign()
                for key, _ in self._selector.select(self._time_left()):
                    key.data()
                now = time.monotonic()
                for slot in self._slots:
                    slot.look(now)
        except OSError as error:  # too many files or processes
            self.give_up(f"{type(error).__name__}: {error}")
        except BaseException as error:
            self.give_up(f"{type(error).__name__}: {error}")
            raise
        finally:
            self._clear_up()

    def _is_over(self) -> bool:
        with self._lock:
            is_busy = self._pending or any(slot.job is not None for slot in self._slots)
            return self._is_stopping or (self._is_finishing and not is_busy)

    def _time_left(self) -> float | None:
        looks = [at for slot in self._slots if (at := slot.next_look()) is not None]
        return max(0.0, min(looks) - time.monotonic()) if looks else None

    def _assign(self) -> None:
        for slot in self._slots:
            while slot.state is SlotState.IDLE:
                with self._lock:
                    if not self._pending:
                        return
                    job = self._pending.popleft()
                if job.future.running() or job.future.set_running_or_notify_cancel():
                    slot.run(job)

    def _at_exit(self) -> None:
        if os.getpid() == self._owner:  # a fork of the program has no thread to stop
            self.stop()
            self.join()

    def _wake(self) -> None:
        with contextlib.suppress(OSError):  # full: it is awake already; closed: it has ended
            self._waker.send(b"\0")

    def _on_woken(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._woken.recv(4096)

    def _broken(self) -> PoolBrokenError:
        return PoolBrokenError(f"the pool has no workers: {self._problem}")

    def _clear_up(self) -> None:
        for slot in self._slots:
            slot.close()
        for slot in self._slots:
            slot.wait(_ENDED_WITHIN_S)
        self._server.release()
        with self._lock:
            self._is_finishing = True
            left = [slot.job for slot in self._slots if slot.job is not None] + list(self._pending)
            self._pending.clear()
        for connection in (self._selector, self._woken, self._waker):
            connection.close()
        shutil.rmtree(self._temporary, ignore_errors=True)
        atexit.unregister(self._at_exit)
        for job in left:
            if job.future.running() or job.future.set_running_or_notify_cancel():
                stopped = TaskStoppedError("the pool was stopped before the task was done")
                job.future.set_exception(self._broken() if self._problem else stopped)


def _unreadable(error: Exception) -> TaskRaisedError:
    name = type(error).__qualname__
    return TaskRaisedError(
        f"the task's value cannot be unpickled: {name}: {error}",
        type_name=name,
        text=str(error),
        traceback="",
    )
