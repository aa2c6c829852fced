"""The process that runs tasks, one after the other; whatever they do to it, its keeper clears away."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import pickle
import signal
import socket
import sys
import traceback
from types import FrameType
from typing import NoReturn

from intarsia.measure.worker_pool.frames import receive_frame, send_frame
from intarsia.measure.worker_pool.messages import (
    EXIT_CONNECTION_LOST,
    Call,
    NoMemory,
    Raised,
    Reply,
    Returned,
    begin_mark,
)
from intarsia.measure.worker_pool.process_tree import be_first_victim, die_with_parent, memory_limit
from intarsia.support.spoilt_process import is_process_spoilt

_LONGEST_TEXT = 64 << 10


class _Terminated(BaseException):  # no error: SIGTERM, which tasks see as an exception to clean up on
    pass


def be_worker(connection: socket.socket, output: int, keeper: int, temporary: str) -> NoReturn:
    """Run calls from the connection until it ends; the process then exits.

    Args:
        connection: Socket for calls and replies.
        output: The pipe that takes standard output and error.
        keeper: The parent's process id.
        temporary: The directory for temporary files; the keeper removes it.
    """
    try:
        _prepare(output, keeper, temporary)
        _serve(connection, os.getpid())
    except SystemExit as error:
        _flush()
        os._exit(_exit_code(error.code))
    except _Terminated:
        os._exit(128 + signal.SIGTERM)
    except BaseException:  # nothing may return into the keeper's code above
        os._exit(EXIT_CONNECTION_LOST)
    os._exit(0)


def _prepare(output: int, keeper: int, temporary: str) -> None:
    import tempfile

    os.setsid()
    die_with_parent(keeper)
    be_first_victim()
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    sys.stdout = open(1, "w", buffering=1, errors="replace", encoding="utf-8")  # noqa: SIM115 -- for good
    sys.stderr = open(2, "w", buffering=1, errors="replace", encoding="utf-8")  # noqa: SIM115 -- for good
    faulthandler.enable(file=2)
    os.environ["TMPDIR"] = tempfile.tempdir = temporary
    signal.signal(signal.SIGTERM, _on_terminate)


def _on_terminate(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 -- the signature of handlers
    raise _Terminated


def _serve(connection: socket.socket, worker_pid: int) -> None:
    files = _identities(connection)
    while (frame := receive_frame(connection)) is not None:
        call: Call = pickle.loads(frame)  # noqa: S301 -- from the parent
        os.write(1, begin_mark(call.number))
        reply = _run(call, files, connection)
        if os.getpid() != worker_pid:  # a task forked, and its child came back here too
            os._exit(0)
        if _identities(connection)[0] != files[0]:
            os._exit(EXIT_CONNECTION_LOST)
        send_frame(connection, pickle.dumps(reply, protocol=5))


def _run(call: Call, files: tuple[object, ...], connection: socket.socket) -> Reply:
    try:
        with memory_limit(call.memory_bytes):
            function, arguments, keywords = pickle.loads(call.call)  # noqa: S301 -- from the parent
            value = pickle.dumps(function(*arguments, **keywords), protocol=5)
        _flush()
        return Returned(call.number, value, _is_spoilt(connection, files))
    except MemoryError as error:
        return NoMemory(call.number, _text(error))
    except (SystemExit, _Terminated):
        raise
    except BaseException as error:  # whatever a task raises is its outcome
        _flush()
        kind, trace = type(error), _formatted(error)
        name = f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")
        return Raised(call.number, name, _text(error), trace, _is_spoilt(connection, files))


def _is_spoilt(connection: socket.socket, files: tuple[object, ...]) -> bool:
    """Whether this process can do no other task: its files are others, or its GPU is lost to it."""
    return is_process_spoilt() or _identities(connection) != files


def _identities(connection: socket.socket) -> tuple[object, ...]:
    """Which files stand behind the connection and the three standard descriptors."""
    return tuple(map(_identity, (connection.fileno(), 0, 1, 2)))


def _identity(descriptor: int) -> tuple[int, int] | None:
    try:
        status = os.fstat(descriptor)
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino


def _text(error: BaseException) -> str:
    try:
        return str(error)[:_LONGEST_TEXT]
    except BaseException as second:  # an exception's own text may raise
        return f"(its text raises {type(second).__name__})"


def _formatted(error: BaseException) -> str:
    try:
        return "".join(traceback.format_exception(error))[-_LONGEST_TEXT:]
    except BaseException as second:  # it calls the exception's own `__str__`
        return f"(its traceback raises {type(second).__name__})"


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()


def _exit_code(code: object) -> int:
    if code is None or isinstance(code, int):
        return (code or 0) & 0xFF
    with contextlib.suppress(OSError):
        os.write(2, f"{code}\n".encode(errors="replace"))
    return 1
