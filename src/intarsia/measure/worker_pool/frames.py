"""Messages over stream sockets with an untrusted other end, which may die or stop at any byte.

A frame is its length in 8 bytes, then its bytes. The parent's side (`Channel`) never blocks; a worker's does.
"""

from __future__ import annotations

import socket
import struct
from itertools import count

_LENGTH = struct.Struct("!Q")
_LARGEST = 1 << 32
_CHUNK = 1 << 18


class Channel:
    """Frames over a socket, without ever blocking.

    Args:
        connection: One end of a stream; it belongs to the channel from now on.
    """

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self.connection = connection
        self._outgoing = bytearray()
        self._incoming = bytearray()

    def send(self, payload: bytes) -> bool:
        """Send a frame as far as that goes now; False means: call `flush` once the socket is writable."""
        self._outgoing += _LENGTH.pack(len(payload)) + payload
        return self.flush()

    def flush(self) -> bool:
        """Send what is left; whether all is sent. What the other end no longer takes is dropped."""
        while self._outgoing:
            try:
                sent = self.connection.send(self._outgoing)
            except BlockingIOError:
                return False
            except OSError:  # the other end is gone; the next read reports it
                self._outgoing.clear()
                return True
            del self._outgoing[:sent]
        return True

    def receive(self, most: int | None) -> tuple[list[bytes], bool]:
        """The frames that have arrived, and whether the stream has ended or gone wrong.

        Args:
            most: Maximum number of chunks to read, so that an endless stream blocks no other; None reads all.
        """
        is_over = False
        for _ in count() if most is None else range(most):
            try:
                chunk = self.connection.recv(_CHUNK)
            except BlockingIOError:
                break
            except OSError:
                chunk = b""
            self._incoming += chunk
            if not chunk:
                is_over = True
                break
        frames: list[bytes] = []
        while len(self._incoming) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._incoming)
            if length > _LARGEST:
                return frames, True
            end = _LENGTH.size + length
            if len(self._incoming) < end:
                break
            frames.append(bytes(self._incoming[_LENGTH.size : end]))
            del self._incoming[:end]
        return frames, is_over

    def close(self) -> None:
        """Close the socket."""
        self.connection.close()


def send_frame(connection: socket.socket, payload: bytes) -> None:
    """Send a frame; blocks.

    Raises:
        OSError: The other end is gone.
    """
    connection.sendall(_LENGTH.pack(len(payload)) + payload)


def receive_frame(connection: socket.socket) -> bytes | None:
    """The next frame, or None at the end of the stream; blocks."""
    head = _receive_exactly(connection, _LENGTH.size)
    return None if head is None else _receive_exactly(connection, _LENGTH.unpack(head)[0])


def _receive_exactly(connection: socket.socket, size: int) -> bytes | None:
    data = bytearray()
    while len(data) < size:
        chunk = connection.recv(min(size - len(data), _CHUNK))
        if not chunk:
            return None
        data += chunk
    return bytes(data)
