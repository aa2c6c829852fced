"""Processes that generate kernels beside this one: loops are written in Python, which uses one core.

A helper imports the code generator once (a third of a second), then reads DAGs from its input and writes
kernels to its output. It takes from the end of the row while this process takes from the front. Whatever it
fails at, also by ending, is left to this process, which then raises the error.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
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
"""Time that the last kernel of a helper may take once this process has nothing left to do."""
_AHEAD_BYTES: Final = 8192
"""Bytes of DAGs that a helper is given ahead, some four of them: the thread that feeds it waits for the
interpreter at every step, while this process writes loops. A pipe has room for several times as many."""
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
        yield helpers
    finally:
        helpers.kill()


class Helpers:
    """Helpers and their threads.

    Args:
        row: DAGs that are left; helpers take from its end.
    """

    def __init__(self, row: Row) -> None:
        self._row = row
        self._kernels: dict[ComputeDAG, CachedKernel] = {}
        self._processes: list[subprocess.Popen[bytes]] = []
        self._threads: list[Thread] = []

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
        self._processes.append(process)
        thread = Thread(target=self._feed, args=(process, generator, settings), daemon=True)
        self._threads.append(thread)
        thread.start()
        return True

    def finish(self) -> dict[ComputeDAG, CachedKernel]:
        """Wait for the kernels in work, and return all that helpers have compiled."""
        for thread in self._threads:
            thread.join(_SECONDS)
        self.kill()
        return self._kernels

    def kill(self) -> None:
        """End all helpers; what they work on is lost."""
        for process in self._processes:
            process.kill()
        for thread in self._threads:
            thread.join()
        for process in self._processes:
            process.wait()
        self._processes.clear()
        self._threads.clear()

    def _feed(
        self, process: subprocess.Popen[bytes], generator: KernelGenerator, settings: PassSettings
    ) -> None:
        """Give DAGs to a helper until none is left, or it fails at one."""
        assert process.stdin is not None
        assert process.stdout is not None
        sent: deque[tuple[ComputeDAG, int]] = deque()
        # Of what it cannot write, pickle raises also TypeError and AttributeError.
        with contextlib.suppress(
            OSError, EOFError, pickle.PickleError, RecursionError, TypeError, AttributeError
        ):
            _write(process.stdin, _message((generator, settings)))
            while True:
                while self._row and sum(size for _, size in sent) < _AHEAD_BYTES:
                    try:
                        dag, carrying = self._row.pop()
                    except IndexError:  # this process was faster
                        break
                    message = _message((dag, carrying))
                    if sent and len(message) > _AHEAD_BYTES:  # both sides would wait for the other to read
                        self._row.append((dag, carrying))
                        break
                    _write(process.stdin, message)
                    sent.append((dag, len(message)))
                if not sent:
                    break
                kernel = pickle.load(process.stdout)  # noqa: S301  # of our own process
                if kernel is None:
                    break
                self._kernels[sent.popleft()[0]] = kernel
        for stream in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                stream.close()


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
            _write(sink, _message(_generate(generator, settings, dag, carrying)))


def _generate(
    generator: KernelGenerator, settings: PassSettings, dag: ComputeDAG, carrying: frozenset[str] | None
) -> CachedKernel | None:
    try:
        return generator.prepare(dag, carrying, settings.context())()
    except Exception:  # whatever it is: the other process raises it
        return None


def _message(content: object) -> bytes:
    return pickle.dumps(content, pickle.HIGHEST_PROTOCOL)


def _write(stream: IO[bytes], message: bytes) -> None:
    stream.write(message)
    stream.flush()
