from __future__ import annotations

import socket
import threading

import pytest

from intarsia.measure.worker_pool.frames import Channel, receive_frame, send_frame


def pair() -> tuple[Channel, socket.socket]:
    ours, theirs = socket.socketpair()
    return Channel(ours), theirs


def test_frames_go_both_ways_whole_and_in_order() -> None:
    channel, theirs = pair()
    with theirs:
        assert channel.send(b"one")
        assert channel.send(b"")
        assert (receive_frame(theirs), receive_frame(theirs)) == (b"one", b"")
        send_frame(theirs, b"two")
        send_frame(theirs, b"three")
        assert channel.receive(None) == ([b"two", b"three"], False)
        assert channel.receive(None) == ([], False)
    assert channel.receive(None) == ([], True)
    channel.close()


def test_sending_more_than_the_socket_takes_does_not_block() -> None:
    channel, theirs = pair()
    data = bytes(range(256)) * 40_000
    received: list[bytes | None] = []
    with theirs:
        assert not channel.send(data)
        thread = threading.Thread(target=lambda: received.append(receive_frame(theirs)))
        thread.start()
        while not channel.flush():
            pass
        thread.join()
    assert received == [data]
    channel.close()


def test_a_frame_that_breaks_off_is_not_delivered() -> None:
    channel, theirs = pair()
    with theirs:
        theirs.sendall((10).to_bytes(8, "big") + b"half")
        assert channel.receive(None) == ([], False)
    assert channel.receive(None) == ([], True)
    channel.close()


def test_what_is_no_frame_ends_the_stream() -> None:
    channel, theirs = pair()
    with theirs:
        theirs.sendall(b"not a frame at all")
        assert channel.receive(None) == ([], True)
    channel.close()


def test_an_endless_stream_is_read_in_portions() -> None:
    channel, theirs = pair()
    with theirs:
        send_frame(theirs, b"a")
        assert channel.receive(0) == ([], False)
        assert channel.receive(1) == ([b"a"], False)
    channel.close()


def test_sending_to_an_end_that_is_gone_is_dropped() -> None:
    channel, theirs = pair()
    theirs.close()
    assert channel.send(b"lost")
    assert channel.receive(None) == ([], True)
    channel.close()


@pytest.mark.parametrize("sent", [b"", b"\0\0", (5).to_bytes(8, "big") + b"abc"])
def test_the_blocking_side_sees_the_end(sent: bytes) -> None:
    channel, theirs = pair()
    channel.connection.sendall(sent)
    channel.close()
    with theirs:
        assert receive_frame(theirs) is None
