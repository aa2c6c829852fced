"""Messages between parent, keeper and worker.

Parent and keeper talk over a socket of packets (`SOCK_SEQPACKET`): a `Command` there, a pickled `Report`
back. Parent and worker talk over a stream of frames of their own, fresh for each worker: a pickled `Call`
there, a `Reply` back.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

OUTPUT_BYTES = 8192
"""Bytes of the end of a task's output that are kept."""

EXIT_CONNECTION_LOST = 121
"""What a worker exits with when it cannot give its result back."""


class Command(Enum):
    """A command to a keeper."""

    START = b"start"  # with the worker's end of its stream as file descriptor
    END = b"end"
    OUTPUT = b"output"


@dataclass(frozen=True, slots=True)
class Born:
    """The keeper runs."""

    pid: int


@dataclass(frozen=True, slots=True)
class Started:
    """A worker runs."""

    pid: int


@dataclass(frozen=True, slots=True)
class Ended:
    """The worker and all its descendants are gone.

    Attributes:
        status: Wait status of the worker.
        begun: Number of the last job that it began; 0 if none.
        output: The end of what that job wrote.
    """

    status: int
    begun: int
    output: bytes


@dataclass(frozen=True, slots=True)
class Output:
    """The end of what the last job wrote."""

    output: bytes


@dataclass(frozen=True, slots=True)
class Failed:
    """The keeper cannot prepare itself; it exits."""

    problem: str


Report: TypeAlias = Born | Started | Ended | Output | Failed


@dataclass(frozen=True, slots=True)
class Call:
    """A job for a worker."""

    number: int
    call: bytes
    memory_bytes: int | None


@dataclass(frozen=True, slots=True)
class Returned:
    """The pickled value that a call gave; `is_spoilt` says that the worker should not be used again."""

    number: int
    value: bytes
    is_spoilt: bool


@dataclass(frozen=True, slots=True)
class Raised:
    """The exception that a call raised, as text."""

    number: int
    type_name: str
    text: str
    traceback: str
    is_spoilt: bool


@dataclass(frozen=True, slots=True)
class NoMemory:
    """A memory allocation of the call failed."""

    number: int
    text: str


Reply: TypeAlias = Returned | Raised | NoMemory


def begin_mark(number: int) -> bytes:
    """Return the mark that a worker writes before a job's output, so that its keeper assigns the output."""
    return b"%s%d\x1e\x00" % (MARK, number)


MARK = b"\x00\x1eintarsia job "
