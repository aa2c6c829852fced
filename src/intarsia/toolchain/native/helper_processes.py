"""Processes that generate kernels beside this one: loops are written in Python, which uses one core.

A helper imports the code generator once (a third of a second), then reads DAGs from its input and writes
kernels to its output. It takes from the end of the row while this process takes from the front, and looks
after the helpers between two kernels of its own: a thread for that would wait for the interpreter at every
step. Whatever a helper fails at, also by ending, is left to this process, which then raises the error.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pickle
import select
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final, TypeAlias

from intarsia.native.dag import ComputeDAG
from intarsia.native.object_code.kernel_cache import CachedKernel
from intarsia.support.environment import COMPILE_PROCESSES, copy_environment
from intarsia.support.garbage_collection import pause_garbage_collection
from intarsia.target.cpu import usable_cores
from intarsia.toolchain.native.generate_kernel import KernelGenerator
from intarsia.transform import PassSettings

_KERNELS: Final = 16
"""Kernels for each process, at least: fewer take less time than its start."""
_MOST: Final = 15
_SECONDS: Final = 60.0
"""Time that a kernel of a helper may take once this process has nothing left to do."""
_AHEAD: Final = 4
"""Number of DAGs that a helper is given ahead, as this process looks after it between two kernels only."""
_PIPE_BYTES: Final = 1 << 20
"""Room for kernels that this process has not read yet: those of some models take 100 KB each."""
_CHUNK: Final = 1 << 16
_HEADER_BYTES: Final = 8
"""Bytes before each kernel: the number of those that follow."""
_LAUNCH: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from intarsia.toolchain.native.helper_processes import serve; serve()"
)

Row: TypeAlias = deque[tuple[ComputeDAG, frozenset[str] | None]]
"""DAGs to compile, each with the placeholders that have each item if it is for any number of items."""


def count_helpers(kernels: int) -> int:
    """Return how many helpers pay for a number of kernels; at most those that the environment allows."""
    given = os.environ.get(COMPILE_PROCESSES, "")
    most = int(given) if given.isdecimal() else usable_cores(Path("/")) - 1
    return min(most, kernels // _KERNELS - 1, _MOST) if kernels >= 2 * _KERNELS else 0


@contextlib.contextmanager
def helper_processes(
    count: int, row: Row, generator: KernelGenerator, settings: PassSettings
) -> Iterator[Helpers]:
    """Start helpers on a row; they end with the context."""
    helpers = Helpers(row)
    try:
        for _ in range(count):
            if not helpers.add(generator, settings):
                break
        helpers.attend()
        yield helpers
    finally:
        helpers.kill()


class Helpers:
    """Helpers of this process.

    Args:
        row: DAGs that are left; helpers take from its end.
    """

    def __init__(self, row: Row) -> None:
        self._row = row
        self._kernels: dict[ComputeDAG, CachedKernel] = {}
        self._helpers: list[_Helper] = []

    def add(self, generator: KernelGenerator, settings: PassSettings) -> bool:
        """Start another helper, and return whether the system allowed it."""
        if not sys.executable:  # Python is embedded in another program
            return False
        try:
            process = subprocess.Popen(  # noqa: S603  # this interpreter, on a module of this package
                (sys.executable, "-c", _LAUNCH, json.dumps(sys.path)),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=copy_environment(),
                start_new_session=True,  # Ctrl-C in a terminal reaches the program only
            )
        except OSError:
            return False
        helper = _Helper(process)
        self._helpers.append(helper)
        helper.send((generator, settings))
        return True

    def attend(self) -> None:
        """Take the kernels that helpers have finished, and give them more DAGs; waits for nothing."""
        for helper in self._helpers:
            self._kernels.update(helper.receive())
            while helper.works and self._row and len(helper.waiting) < _AHEAD:
                dag, carrying = self._row.pop()
                if helper.send((dag, carrying)):
                    helper.waiting.append((dag, carrying))
                else:
                    self._row.append((dag, carrying))

    def take_back(self) -> tuple[ComputeDAG, frozenset[str] | None] | None:
        """Return the DAG that a helper would begin last; None if each has at most the one that it works on.

        The caller generates that kernel. That the helper does so too, until it is ended, is no loss: nothing
        else is left.
        """
        busiest = max(self._helpers, key=lambda helper: len(helper.waiting), default=None)
        return busiest.waiting.pop() if busiest is not None and len(busiest.waiting) > 1 else None

    def finish(self) -> dict[ComputeDAG, CachedKernel]:
        """Wait for the kernels in work, and return all that helpers have compiled."""
        for helper in self._helpers:
            while helper.wait(_SECONDS):
                self._kernels.update(helper.receive())
        self.kill()
        return self._kernels

    def kill(self) -> None:
        """End all helpers; what they work on is lost."""
        for helper in self._helpers:
            helper.end()
        self._helpers.clear()


class _Helper:
    """One helper, and what was sent to it and is not answered yet.

    Args:
        process: The process.

    Attributes:
        waiting: DAGs without an answer, in their order.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._input, self._output = process.stdin, process.stdout
        self._unsent, self._unread = bytearray(), bytearray()
        self.waiting: Row = deque()
        self.works = True
        for stream in (self._input, self._output):
            os.set_blocking(stream.fileno(), False)
        with contextlib.suppress(OSError):  # the system allows less
            fcntl.fcntl(self._output, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)

    def send(self, content: object) -> bool:
        """Send a message, or what there is room for, and the rest later; return whether it can be written."""
        # Of what it cannot write, pickle raises also TypeError and AttributeError.
        try:
            self._unsent += _message(content)
        except (pickle.PickleError, RecursionError, TypeError, AttributeError):
            self.works = False
            return False
        self._flush()
        return True

    def receive(self) -> Iterator[tuple[ComputeDAG, CachedKernel]]:
        """Yield the DAGs whose kernels have arrived, and these; a failure ends the work of the helper."""
        self._flush()
        self._read()
        while self.waiting and len(self._unread) >= _HEADER_BYTES:
            end = _HEADER_BYTES + int.from_bytes(self._unread[:_HEADER_BYTES], "little")
            if len(self._unread) < end:
                return
            try:
                kernel = pickle.loads(self._unread[_HEADER_BYTES:end])  # noqa: S301  # of our own process
            except Exception:  # an answer that is none may raise anything
                kernel = None
            if not isinstance(kernel, CachedKernel):
                self._give_up()
                return
            del self._unread[:end]
            yield self.waiting.popleft()[0], kernel

    def wait(self, seconds: float) -> bool:
        """Wait for a part of the next answer; return whether it has come, false also if none is expected."""
        if not self.waiting or not self.works:
            return False
        events = select.poll()
        events.register(self._output, select.POLLIN)
        if self._unsent:
            events.register(self._input, select.POLLOUT)
        if events.poll(seconds * 1e3):
            return True
        self._give_up()
        return False

    def end(self) -> None:
        """End the process."""
        self._process.kill()
        for stream in (self._input, self._output):
            with contextlib.suppress(OSError):
                stream.close()
        self._process.wait()

    def _give_up(self) -> None:
        self.works = False
        self.waiting.clear()

    def _flush(self) -> None:
        try:
            while self._unsent:
                del self._unsent[: os.write(self._input.fileno(), self._unsent)]
        except BlockingIOError:
            return
        except OSError:  # it has ended
            self._unsent.clear()
            self.works = False

    def _read(self) -> None:
        try:
            while chunk := os.read(self._output.fileno(), _CHUNK):
                self._unread += chunk
        except BlockingIOError:
            return
        except OSError:
            pass
        self.works = False  # it has ended


def serve() -> None:
    """Be a helper: read the generator, then DAGs, until the input ends; write a kernel for each.

    None in place of a kernel is a failure.
    """
    source, sink = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what else is printed is no answer
    with contextlib.suppress(EOFError, OSError), pause_garbage_collection():
        generator, settings = pickle.load(source)  # noqa: S301  # of the process that started this one
        while True:
            dag, carrying = pickle.load(source)  # noqa: S301
            _answer(sink, _message(_generate(generator, settings, dag, carrying)))


def _generate(
    generator: KernelGenerator, settings: PassSettings, dag: ComputeDAG, carrying: frozenset[str] | None
) -> CachedKernel | None:
    try:
        return generator.prepare(dag, carrying, settings.context())()
    except Exception:  # whatever it is: the other process raises it
        return None


def _message(content: object) -> bytes:
    return pickle.dumps(content, pickle.HIGHEST_PROTOCOL)


def _answer(stream: IO[bytes], message: bytes) -> None:
    stream.write(len(message).to_bytes(_HEADER_BYTES, "little") + message)
    stream.flush()
