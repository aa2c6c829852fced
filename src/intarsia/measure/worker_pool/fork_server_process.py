"""A fork server, seen from the program: one process for all pools that preload the same modules."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from intarsia.support.environment import COMPILE_PROCESSES, PROGRAM_CACHE, copy_environment

_LAUNCH = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from intarsia.measure.worker_pool.fork_server import main; main(sys.argv[2:])"
)
_ENDS_WITHIN_S = 0.2
"""Seconds in which a server ends that waits for requests; one that imports is killed."""
_KILLED_WITHIN_S = 5.0


@dataclass(frozen=True)
class _Surroundings:
    """What keepers inherit from their server, and what pools must have in common to share one."""

    program: int
    preload: tuple[str, ...]
    search_path: tuple[str, ...]
    environment: frozenset[tuple[str, str]]
    folder: str


class ForkServerProcess:
    """Starts keepers by forks of a process that has imported their modules.

    It is a new program rather than a fork of this one, so it inherits no lock, thread or file. It never runs
    the main script, so scripts that use a pool need no `if __name__ == "__main__"`. Its process starts with
    the first keeper, and starts again if it has ended.

    Args:
        preload: Modules it imports.
    """

    _shared: ClassVar[dict[_Surroundings, ForkServerProcess]] = {}
    _lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, preload: tuple[str, ...]) -> None:
        self._preload = preload
        self._users = 0
        self._requests: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @classmethod
    def shared(cls, preload: tuple[str, ...]) -> ForkServerProcess:
        """Return the server of this program for these modules, the environment and the folder of now.

        Each call needs a `release`.
        """
        key = _Surroundings(
            os.getpid(), preload, tuple(sys.path), frozenset(os.environ.items()), str(Path.cwd())
        )
        with cls._lock:
            server = cls._shared.setdefault(key, cls(preload))
            server._users += 1
            return server

    def release(self) -> None:
        """Let go of a shared server; its process ends with the last user."""
        with self._lock:
            self._users -= 1
            if self._users:
                return
            for key in [key for key, server in self._shared.items() if server is self]:
                del self._shared[key]
            self._end()

    def start_keeper(self, control: socket.socket, temporary: str) -> None:
        """Have a keeper forked.

        Args:
            control: The keeper's end of its control socket.
            temporary: Folder for its temporary files.

        Raises:
            OSError: No process can be started.
        """
        with self._lock:
            if self._requests is None or not self._ask(control, temporary):
                self._end()
                self._launch()
                self._ask(control, temporary)  # if that fails, the keeper's end is seen on its socket

    def kill(self) -> None:
        """End the process at once; the next keeper is forked from a new one."""
        with self._lock:
            self._end()

    def _ask(self, control: socket.socket, temporary: str) -> bool:
        assert self._requests is not None
        try:
            socket.send_fds(self._requests, [os.fsencode(temporary)], [control.fileno()])
        except OSError:
            return False
        return True

    def _launch(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        arguments = (json.dumps(sys.path), str(theirs.fileno()), str(os.getpid()), *self._preload)
        try:
            self._process = subprocess.Popen(  # noqa: S603 -- the same Python with our own code
                (sys.executable, "-c", _LAUNCH, *arguments),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                # Workers share the cores already, and candidates are compiled once, of which few are kept.
                env={**copy_environment(), COMPILE_PROCESSES: "0", PROGRAM_CACHE: "0"},
                start_new_session=True,  # Ctrl-C in a terminal reaches the program only
            )
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        self._requests = ours

    def _end(self) -> None:
        if self._requests is not None:
            self._requests.close()
            self._requests = None
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_ENDS_WITHIN_S)
            self._process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_KILLED_WITHIN_S)
            self._process = None
