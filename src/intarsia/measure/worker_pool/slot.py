"""One place of the pool, seen from the parent: a keeper, its worker of the moment, and the job this runs."""

from __future__ import annotations

import contextlib
import pickle
import selectors
import socket
import time
from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import partial
from typing import Protocol, assert_never

from intarsia.measure.worker_pool.failure import (
    TaskFailedError,
    crashed,
)
from intarsia.measure.worker_pool.fork_server_process import ForkServerProcess
from intarsia.measure.worker_pool.frames import Channel
from intarsia.measure.worker_pool.keeper_process import KeeperProcess, kill_session
from intarsia.measure.worker_pool.messages import (
    Born,
    Call,
    Command,
    Ended,
    Failed,
    Output,
    Report,
    Returned,
    Started,
)
from intarsia.measure.worker_pool.process_tree import held_bytes
from intarsia.measure.worker_pool.task import Job
from intarsia.measure.worker_pool.verdict import Judge, read_reply

WATCH_S = 0.05
"""Seconds between two checks of the memory of a job with a limit."""

_STARTED_WITHIN_S = 120.0
"""Seconds in which a worker must start, imports included."""
_ANSWERED_WITHIN_S = 10.0
"""Seconds in which a keeper must answer a command."""
_END_FOLLOWS_S = 1.0
"""Seconds in which a worker with a closed connection must end."""
_MOST_FAILED_STARTS = 3
_MOST_CHUNKS = 64


class Owner(Protocol):
    """The owner of slots, which gives them jobs and receives the outcomes."""

    def finish(self, job: Job, outcome: Returned | TaskFailedError) -> None:
        """A job has given a value, or failed."""

    def requeue(self, job: Job) -> None:
        """A job was not begun: its worker had ended before."""

    def give_up(self, problem: str) -> None:
        """No worker can be started."""


@dataclass(frozen=True)
class Equipment:
    """What all slots of a pool share.

    Attributes:
        owner: Owner of the slots.
        selector: Selector on which slots register their sockets, with the function to call as data.
        server: Server that forks keepers.
        temporary: Folder for temporary files.
        max_tasks: Number of jobs after which a worker is replaced; None for no limit.
    """

    owner: Owner
    selector: selectors.BaseSelector
    server: ForkServerProcess
    temporary: str
    max_tasks: int | None


class SlotState(Enum):
    """What a slot does."""

    STARTING = auto()
    IDLE = auto()
    BUSY = auto()
    ASKING = auto()  # its keeper for the output of a job that has failed
    ENDING = auto()
    CLOSED = auto()


class Slot:
    """A keeper and its worker; all methods are called by the dispatcher's thread."""

    def __init__(self, equipment: Equipment) -> None:
        self._equipment = equipment
        self._judge = Judge()
        self._failed_starts = 0
        self.job: Job | None = None
        self.worker = 0
        self._verdict: TaskFailedError | None = None
        self._channel: Channel | None = None
        self._deadline: float | None = None
        self._watch_at: float | None = None
        self._held_before = self._tasks_done = 0
        self._is_spoilt = self._is_lost = False
        self._launch()

    def run(self, job: Job) -> None:
        """Give a job to the worker, which is idle."""
        assert self._channel is not None
        self.job, self.state = job, SlotState.BUSY
        self._tasks_done += 1
        self._deadline = None
        if job.timeout_s is not None:
            self._deadline = time.monotonic() + job.timeout_s
        if job.memory_bytes is not None:
            self._watch_at = time.monotonic() + WATCH_S
            self._held_before = held_bytes(self.worker)
        call = Call(job.number, job.call, job.memory_bytes)
        if not self._channel.send(pickle.dumps(call, protocol=5)):
            self._listen(self._channel, selectors.EVENT_READ | selectors.EVENT_WRITE)

    def next_look(self) -> float | None:
        """When `look` has something to do, or None."""
        return min((at for at in (self._deadline, self._watch_at) if at is not None), default=None)

    def look(self, now: float) -> None:
        """Enforce the limits of the job, and those of the keeper's patience."""
        if self._deadline is not None and now >= self._deadline:
            self._deadline = None
            if self.state is SlotState.BUSY and self.job is not None:
                self._end(self._judge.overdue(self.job, is_lost=self._is_lost))
            else:
                self._keeper.kill()  # it does not answer; its end is seen on its socket
        if self._watch_at is not None and now >= self._watch_at and self.job is not None:
            self._watch_at = now + WATCH_S
            held = held_bytes(self.worker) - self._held_before
            if held > (self.job.memory_bytes or held):
                self._end(self._judge.too_large(self.job, held))

    def close(self) -> None:
        """Let go of keeper and worker, which then end; `wait` waits for that."""
        if self.state is not SlotState.CLOSED:
            self.state = SlotState.CLOSED
            self._drop_channel()
            self._drop_keeper()

    def wait(self, seconds: float) -> None:
        """Wait until the keeper is gone, killing it past the time."""
        self._keeper.wait(seconds)

    def _launch(self) -> None:
        self._keeper = KeeperProcess(self._equipment.temporary, self._equipment.server)
        self._equipment.selector.register(self._keeper.control, selectors.EVENT_READ, self._on_reports)
        self.worker = 0
        self._start_worker()

    def _start_worker(self) -> None:
        self.state = SlotState.STARTING
        self._deadline, self._watch_at = time.monotonic() + _STARTED_WITHIN_S, None
        self._tasks_done = 0
        self._is_spoilt = self._is_lost = False
        ours, theirs = socket.socketpair()
        with theirs:
            self._keeper.command(Command.START, theirs.fileno())
        self._channel = Channel(ours)
        self._listen(self._channel, selectors.EVENT_READ)

    def _listen(self, channel: Channel, events: int) -> None:
        with contextlib.suppress(KeyError):
            self._equipment.selector.unregister(channel.connection)
        self._equipment.selector.register(channel.connection, events, partial(self._on_channel, channel))

    def _drop_channel(self) -> None:
        if self._channel is not None:
            with contextlib.suppress(KeyError):
                self._equipment.selector.unregister(self._channel.connection)
            self._channel.close()
            self._channel = None

    def _drop_keeper(self) -> None:
        with contextlib.suppress(KeyError, ValueError):
            self._equipment.selector.unregister(self._keeper.control)
        self._keeper.close()

    def _on_reports(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self.state is not SlotState.CLOSED:
                report = self._keeper.report()
                if report is None:
                    self._on_keeper_lost()
                    return
                self._on_report(report)

    def _on_report(self, report: Report) -> None:
        match report:
            case Started(pid):
                self.worker, self._failed_starts = pid, 0
                self.state, self._deadline = SlotState.IDLE, None
            case Output(output):
                if self.state is SlotState.ASKING:
                    self._fail(output)
                    self._free()
            case Ended():
                self._on_ended(report)
            case Born():
                pass  # the keeper's process id, which `KeeperProcess` keeps
            case Failed(problem):
                self._equipment.owner.give_up(problem)
            case _:
                assert_never(report)

    def _on_ended(self, ended: Ended) -> None:
        if self._channel is not None and not self._is_lost:
            self._on_channel(self._channel, most=None)  # it may have replied just before
        if self.job is not None and self._verdict is None:
            if ended.begun != self.job.number:
                job, self.job = self.job, None
                self._equipment.owner.requeue(job)
            else:
                self._verdict = self._judge.ended(self.job, ended.status)
        self.worker = 0
        self._fail(ended.output)
        self._drop_channel()
        self._start_worker()

    def _on_keeper_lost(self) -> None:
        """The keeper was killed, by its worker or from outside; its worker dies with it."""
        if self.state is SlotState.STARTING:
            self._failed_starts += 1
        self._drop_keeper()
        self._keeper.kill()
        self._keeper.wait(_ANSWERED_WITHIN_S)
        if self.worker:
            kill_session(self.worker)
        if self._verdict is None:
            self._verdict = crashed("the task's process ended together with the process that keeps it")
        self._fail(b"")
        self._drop_channel()
        if self._failed_starts >= _MOST_FAILED_STARTS:
            self.state = SlotState.CLOSED
            self._equipment.owner.give_up("the processes that start workers end at once")
        else:
            self._launch()

    def _on_channel(self, channel: Channel, most: int | None = _MOST_CHUNKS) -> None:
        if channel is not self._channel:
            return  # of a worker that has been replaced meanwhile
        if channel.flush():
            self._listen(channel, selectors.EVENT_READ)
        frames, is_over = channel.receive(most)
        for frame in frames:
            self._on_reply(frame)
        if is_over:
            self._is_lost = True
            self._equipment.selector.unregister(channel.connection)
            if self.state is SlotState.BUSY:
                after = time.monotonic() + _END_FOLLOWS_S  # unless it only closed its connection
                self._deadline = after if self._deadline is None else min(after, self._deadline)
            elif self.state is SlotState.IDLE:
                self._end(None)

    def _on_reply(self, frame: bytes) -> None:
        if self.state is not SlotState.BUSY or self.job is None:
            return  # too late: the job was ended
        outcome, self._is_spoilt = read_reply(frame, self.job)
        self._deadline = self._watch_at = None
        if isinstance(outcome, TaskFailedError):
            self._verdict, self.state = outcome, SlotState.ASKING
            self._deadline = time.monotonic() + _ANSWERED_WITHIN_S
            self._keeper.command(Command.OUTPUT)
            return
        job, self.job = self.job, None
        self._equipment.owner.finish(job, outcome)
        self._free()

    def _fail(self, output: bytes) -> None:
        """Deliver the verdict on the job to the owner, if there is one."""
        job, verdict, self.job, self._verdict = self.job, self._verdict, None, None
        if job is not None and verdict is not None:
            text = output.decode(errors="replace")
            self._equipment.owner.finish(job, replace(verdict, output=text))

    def _free(self) -> None:
        """The job is done: the worker waits for another one, or is replaced."""
        most = self._equipment.max_tasks
        if self._is_spoilt or self._is_lost or (most is not None and self._tasks_done >= most):
            self._end(None)
        else:
            self.state, self._deadline = SlotState.IDLE, None

    def _end(self, verdict: TaskFailedError | None) -> None:
        """Have the worker ended, and with it the job if there is one."""
        self._verdict, self.state = verdict, SlotState.ENDING
        self._deadline, self._watch_at = time.monotonic() + _ANSWERED_WITHIN_S, None
        self._keeper.command(Command.END)
