"""The process between the parent and one worker: starts it, ends it with all it started, reports.

A keeper runs no task, so it always answers. Being the worker's parent and the one that adopts its orphans,
it learns how the worker ended and can end everything that the worker left behind, even in sessions of its
own. A task that kills "the parent process" kills the keeper of its own worker and nothing else. When
a keeper's own parent ends, however that happens, the keeper ends its worker and exits.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import selectors
import shutil
import signal
import socket
import tempfile
import time

from intarsia.measure.worker_pool.messages import (
    MARK,
    OUTPUT_BYTES,
    Born,
    Command,
    Ended,
    Failed,
    Output,
    Report,
    Started,
)
from intarsia.measure.worker_pool.process_tree import kill_children
from intarsia.measure.worker_pool.worker import be_worker

GRACE_S = 0.5
"""So long a worker may clean up after SIGTERM before SIGKILL."""


def fail(control: socket.socket, problem: str) -> None:
    """Report that no keeper can run here."""
    control.send(pickle.dumps(Failed(problem)))


class Keeper:
    """Runs at most one worker at a time.

    Args:
        control: Commands come from here, reports go there.
        parent: Descriptor that becomes readable when the program that has the pool ends, or None.
        temporary: Folder in which each worker gets one of its own.
    """

    def __init__(self, control: socket.socket, parent: int | None, temporary: str) -> None:
        self._control = control
        self._temporary = temporary
        self._folder = ""
        self._worker: int | None = None
        self._kill_at: float | None = None
        self._is_closing = False
        self._reader: int | None = None
        self._begun, self._tail = 0, b""
        self._woken, self._waker = socket.socketpair()
        self._woken.setblocking(False)
        self._waker.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(control, selectors.EVENT_READ, self._obey)
        self._selector.register(self._woken, selectors.EVENT_READ, self._reap)
        self._parent = parent
        if self._parent is not None:
            self._selector.register(self._parent, selectors.EVENT_READ, self._close)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        signal.set_wakeup_fd(self._waker.fileno(), warn_on_full_buffer=False)
        self._report(Born(os.getpid()))

    def run(self) -> None:
        """Serve until the parent ends or closes the connection."""
        while not (self._is_closing and self._worker is None):
            left = None if self._kill_at is None else max(0.0, self._kill_at - time.monotonic())
            for key, _ in self._selector.select(left):
                key.data()
            if self._kill_at is not None and time.monotonic() >= self._kill_at:
                self._kill_at = None
                self._signal_worker(signal.SIGKILL)
        with contextlib.suppress(
            OSError
        ):  # the folder is empty for the last keeper of a pool without its parent
            os.rmdir(self._temporary)  # noqa: PTH106 -- a string for tempfile

    def _obey(self) -> None:
        data, descriptors, _, _ = socket.recv_fds(self._control, 64, 1)
        if not data:
            self._close()
            return
        match Command(data):
            case Command.START:
                self._start(descriptors[0])
            case Command.END:
                self._end_worker()
            case Command.OUTPUT:
                self._drain()
                self._report(Output(self._tail))

    def _close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            self._selector.unregister(self._control)
            if self._parent is not None:
                self._selector.unregister(self._parent)
            self._end_worker()

    def _start(self, connection: int) -> None:
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        self._folder = tempfile.mkdtemp(prefix="worker-", dir=self._temporary)
        self._begun, self._tail = 0, b""
        keeper = os.getpid()
        pid = os.fork()
        if pid == 0:
            self._forget(reader)
            be_worker(socket.socket(fileno=connection), writer, keeper, self._folder)
        os.close(writer)
        os.close(connection)
        self._worker, self._reader = pid, reader
        self._selector.register(reader, selectors.EVENT_READ, self._drain)
        self._report(Started(pid))

    def _forget(self, reader: int) -> None:
        """Let go, in the worker, of all that is the keeper's."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self._selector.close()
        for connection in (self._control, self._woken, self._waker):
            connection.close()
        os.close(reader)
        if self._parent is not None:
            os.close(self._parent)

    def _end_worker(self) -> None:
        if self._worker is not None and self._kill_at is None:
            self._kill_at = time.monotonic() + GRACE_S
            self._signal_worker(signal.SIGTERM)
            self._signal_worker(signal.SIGCONT)

    def _signal_worker(self, number: signal.Signals) -> None:
        """Signal the worker and its process group; it is not reaped yet, so its number is still its own."""
        if self._worker is None:
            return
        try:
            os.killpg(self._worker, number)
        except (ProcessLookupError, PermissionError):  # it is not the leader of its own group yet
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._worker, number)

    def _reap(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._woken.recv(4096)
        with contextlib.suppress(ChildProcessError):
            while ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                if ended.si_pid == self._worker:
                    self._clear_away(self._worker)
                else:
                    os.waitpid(ended.si_pid, 0)

    def _clear_away(self, worker: int) -> None:
        self._signal_worker(signal.SIGKILL)
        _, status = os.waitpid(worker, 0)
        self._worker = self._kill_at = None
        kill_children()
        self._drain()
        self._stop_reading()
        shutil.rmtree(self._folder, ignore_errors=True)
        self._report(Ended(status, self._begun, self._tail))

    def _drain(self) -> None:
        """Read what the worker has written; keep the end of what its last job wrote."""
        while self._reader is not None:
            try:
                data = os.read(self._reader, 1 << 16)
            except BlockingIOError:
                return
            if not data:
                self._stop_reading()
            self._tail = self._after_mark(self._tail + data)[-OUTPUT_BYTES:]
            if self._worker is not None and len(data) == 1 << 16:
                return  # a worker that never stops writing must not keep its keeper from obeying

    def _after_mark(self, text: bytes) -> bytes:
        at = text.rfind(MARK)
        end = text.find(b"\x1e\x00", at + len(MARK))
        if at < 0 or end < 0 or not text[at + len(MARK) : end].isdigit():
            return text
        self._begun = int(text[at + len(MARK) : end])
        return text[end + 2 :]

    def _stop_reading(self) -> None:
        if self._reader is not None:
            self._selector.unregister(self._reader)
            os.close(self._reader)
            self._reader = None

    def _report(self, report: Report) -> None:
        with contextlib.suppress(OSError):  # the parent is gone, which the selector says next
            self._control.send(pickle.dumps(report))
