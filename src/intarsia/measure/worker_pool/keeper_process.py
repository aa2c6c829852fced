"""A keeper, seen from the program: the socket to command it, and its end."""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import socket

from intarsia.measure.worker_pool.fork_server_process import ForkServerProcess
from intarsia.measure.worker_pool.messages import Born, Command, Report

_PACKET = 1 << 16


class KeeperProcess:
    """Starts a keeper.

    Args:
        temporary: Folder for temporary files.
        server: Server that forks it.
    """

    def __init__(self, temporary: str, server: ForkServerProcess) -> None:
        self.pid: int | None = None
        self._server = server
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.control.setblocking(False)
        with theirs:
            try:
                server.start_keeper(theirs, temporary)
            except BaseException:
                self.control.close()
                raise

    def command(self, command: Command, *descriptors: int) -> None:
        """Send a command to the keeper; if the keeper is gone, the next read reports that."""
        with contextlib.suppress(OSError):
            socket.send_fds(self.control, [command.value], descriptors)

    def report(self) -> Report | None:
        """What the keeper says, or None if it has ended.

        Raises:
            BlockingIOError: It says nothing.
        """
        while True:
            try:
                packet = self._receive()
            except ConnectionError:
                return None
            if not packet:
                return None
            report: Report = pickle.loads(packet)  # noqa: S301 -- keepers run no task
            if not isinstance(report, Born):
                return report
            self.pid = report.pid

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
        if self.pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
        elif not self.has_ended(0.0):  # its server does not fork it
            self._server.kill()

    def close(self) -> None:
        """Let go of the keeper, which then ends its worker and exits; `wait` waits for that."""
        with contextlib.suppress(OSError):  # the keeper is gone
            self.control.shutdown(socket.SHUT_WR)

    def wait(self, seconds: float) -> None:
        """Wait for its end; past the time, kill it."""
        if not self.has_ended(seconds):
            self.kill()
            self.has_ended(seconds)
        self.control.close()

    def has_ended(self, seconds: float) -> bool:
        """Wait for its end, whatever it still has to say; whether it came within these seconds.

        The keeper's end of the socket is then closed: no other process holds it.
        """
        if self.control.fileno() < 0:
            return True
        poll = select.poll()
        poll.register(self.control, 0)  # a hang-up is always reported
        return bool(poll.poll(1000 * seconds))


def kill_session(leader: int) -> None:
    """Kill the process group of a worker without a keeper."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
