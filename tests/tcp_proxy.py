"""A proxy between a client and a server: it counts bytes, and can cut the network."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

_PIECE = 1 << 16


@dataclass(eq=False)
class TcpProxy:
    """Forwards connections to a port of this machine.

    Attributes:
        target: Port of the server.
        listener: Socket of the clients.
        sent: Bytes from clients to the server.
        received: Bytes from the server to clients.
    """

    target: int
    listener: socket.socket
    sent: int = 0
    received: int = 0
    _is_cut: bool = False
    _open: list[socket.socket] = field(default_factory=list)

    @property
    def address(self) -> str:
        """The address for clients."""
        return f"tcp://127.0.0.1:{self.listener.getsockname()[1]}"

    def cut(self) -> None:
        """End all connections, and refuse new ones."""
        self._is_cut = True
        for end in self._open:
            _close(end)
        self._open.clear()

    def restore(self) -> None:
        """Accept connections again."""
        self._is_cut = False

    def serve(self) -> None:
        """Accept connections until the listener is closed."""
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            if self._is_cut:
                _close(client)
                continue
            try:
                server = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                _close(client)
                continue
            self._open += [client, server]
            for source, sink, is_sent in ((client, server, True), (server, client, False)):
                threading.Thread(target=self._forward, args=(source, sink, is_sent), daemon=True).start()

    def _forward(self, source: socket.socket, sink: socket.socket, is_sent: bool) -> None:
        with suppress(OSError):
            while piece := source.recv(_PIECE):
                sink.sendall(piece)
                if is_sent:
                    self.sent += len(piece)
                else:
                    self.received += len(piece)
        _close(source)
        _close(sink)


def _close(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()


@contextmanager
def tcp_proxy(target: int) -> Iterator[TcpProxy]:
    """A proxy to a port of this machine."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        proxy = TcpProxy(target, listener)
        threading.Thread(target=proxy.serve, daemon=True).start()
        try:
            yield proxy
        finally:
            proxy.cut()
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
