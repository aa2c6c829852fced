"""A keeper, seen from the parent: a process of the same Python, and the socket to command it."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import signal
import socket
import subprocess
import sys

from intarsia.measure.worker_pool.messages import Command, Report

_LAUNCH = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from intarsia.measure.worker_pool.keeper import main; main(sys.argv[2:])"
)
_PACKET = 1 << 16


class KeeperProcess:
    """Starts a keeper.

    It is a new program rather than a fork, so it inherits no lock, thread or file of this process. It never
    runs the main script, so scripts that use a pool need no `if __name__ == "__main__"`.

    Args:
        temporary: Folder for temporary files.
        preload: Modules it imports before it forks workers.
    """

    def __init__(self, temporary: str, preload: tuple[str, ...]) -> None:
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.control.setblocking(False)
        arguments = (json.dumps(sys.path), str(theirs.fileno()), str(os.getpid()), temporary, *preload)
        try:
            self._process = subprocess.Popen(  # noqa: S603 -- the same Python with our own code
                (sys.executable, "-c", _LAUNCH, *arguments),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,  # Ctrl-C in a terminal reaches the parent only
            )
        except BaseException:
            self.control.close()
            raise
        finally:
            theirs.close()

    @property
    def pid(self) -> int:
        """Process id of the keeper."""
        return self._process.pid

    def command(self, command: Command, *descriptors: int) -> None:
        """Send a command to the keeper; if the keeper is gone, the next read reports that."""
        with contextlib.suppress(OSError):
            socket.send_fds(self.control, [command.value], descriptors)

    def report(self) -> Report | None:
        """What the keeper says, or None if it has ended.

        Raises:
            BlockingIOError: It says nothing.
        """
        try:
            packet = self._receive()
        except ConnectionError:
            return None
        report: Report | None = pickle.loads(packet) if packet else None  # noqa: S301 -- keepers run no task
        return report

    def _receive(self) -> bytes:
        """Return the next packet; empty at the end of the connection.

        Raises:
            BlockingIOError: There is none yet.
            ConnectionError: The connection is lost, and all packets are read.
        """
        try:
            return self.control.recv(_PACKET)
        except ConnectionError:
            # A keeper that ends with commands unread resets the connection. Linux reports that once, before
            # the packets that the keeper had sent, such as why it ended.
            return self.control.recv(_PACKET)

    def kill(self) -> None:
        """End the keeper at once; its worker follows, by `PR_SET_PDEATHSIG`."""
        self._process.kill()

    def close(self) -> None:
        """Let go of the keeper, which then ends its worker and exits."""
        self.control.close()

    def wait(self, seconds: float) -> None:
        """Wait for its end; past the time, kill it."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            self._process.wait()


def kill_session(leader: int) -> None:
    """Kill the process group of a worker without a keeper."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
