"""Hardware counters of this process's threads, by perf_event_open of Linux.

The interface of Linux is small and stable, so that ctypes is enough: no library is needed to open an event
and read it. Only work in user space is counted, which `kernel.perf_event_paranoid` of 2, the default, allows.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from intarsia.support.errors import UsageError

_PARANOID: Final = Path("/proc/sys/kernel/perf_event_paranoid")
_THREADS: Final = Path("/proc/self/task")
_SYSTEM_CALLS: Final = {"x86_64": 298, "aarch64": 241}
"""Number of perf_event_open, by architecture."""
_ATTRIBUTE_BYTES: Final = 128
_FLAGS: Final = 1 << 1 | 1 << 5 | 1 << 6
"""Bits of perf_event_attr: inherited by new threads, without kernel and hypervisor."""
_FORMAT: Final = 1 << 0 | 1 << 1
"""Each read has the value, and the nanoseconds for which the event was enabled and counted."""
_CLOSE_ON_EXEC: Final = 1 << 3


@dataclass(frozen=True, slots=True)
class CounterEvent:
    """An event that a CPU counts.

    Attributes:
        name: Name in profiles.
        kind: Type of perf_event_attr: 0 for events of the hardware, 1 for those of the system.
        number: Number of the event in its type.
    """

    name: str
    kind: int
    number: int


EVENTS: Final = (
    CounterEvent("cycles", 0, 0),
    CounterEvent("instructions", 0, 1),
    CounterEvent("cache misses", 0, 3),
    CounterEvent("branch misses", 0, 5),
)


class EventReading(NamedTuple):
    """Value of an event, and the nanoseconds for which it was enabled and counted."""

    value: int
    enabled: int
    counted: int


class EventSystem(Protocol):
    """The operating system, as far as counters need it."""

    def threads(self) -> Sequence[int]:
        """Return the numbers of the threads of this process."""

    def open(self, event: CounterEvent, thread: int) -> int:
        """Open an event of a thread and return its file.

        Raises:
            OSError: It cannot be counted.
        """

    def read(self, file: int) -> EventReading:
        """Return what an event has counted."""

    def close(self, file: int) -> None:
        """Close an event."""


class LinuxEvents:
    """Events by perf_event_open."""

    def threads(self) -> Sequence[int]:
        """As `EventSystem.threads`."""
        return [int(entry.name) for entry in _THREADS.iterdir()] if _THREADS.exists() else []

    def open(self, event: CounterEvent, thread: int) -> int:
        """As `EventSystem.open`."""
        number = _SYSTEM_CALLS.get(platform.machine())
        if number is None or platform.system() != "Linux":
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
        attribute = bytearray(_ATTRIBUTE_BYTES)
        struct.pack_into("=IIQ", attribute, 0, event.kind, _ATTRIBUTE_BYTES, event.number)
        struct.pack_into("=QQ", attribute, 32, _FORMAT, _FLAGS)
        memory = (ctypes.c_char * _ATTRIBUTE_BYTES).from_buffer(attribute)
        library = ctypes.CDLL(None, use_errno=True)
        file = int(library.syscall(number, memory, thread, -1, -1, _CLOSE_ON_EXEC))
        if file < 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
        return file

    def read(self, file: int) -> EventReading:
        """As `EventSystem.read`."""
        return EventReading(*struct.unpack("=QQQ", os.read(file, 24)))

    def close(self, file: int) -> None:
        """As `EventSystem.close`."""
        os.close(file)


class HardwareCounters:
    """Counters of all threads of this process, and of those that they start; opened at once.

    Args:
        events: Events to count; those that the machine has not are left out.
        system: The operating system.

    Raises:
        UsageError: None of the events can be counted.
    """

    def __init__(self, events: Sequence[CounterEvent] = EVENTS, system: EventSystem | None = None) -> None:
        self._system = system or LinuxEvents()
        self._files: dict[str, list[int]] = {}
        problem = 0
        for event in events:
            try:
                self._files[event.name] = self._open(event)
            except OSError as error:
                problem = problem or error.errno or errno.ENOSYS
        if not self._files:
            raise UsageError(f"hardware counters cannot be read: {_reason(problem)}")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the events that are counted."""
        return tuple(self._files)

    def read(self) -> tuple[float, ...]:
        """Return the sum over threads of each event, scaled where the CPU had too few counters for all."""
        return tuple(sum(map(self._value, files)) for files in self._files.values())

    def close(self) -> None:
        """Close all events."""
        for files in self._files.values():
            for file in files:
                self._system.close(file)
        self._files = {}

    def _open(self, event: CounterEvent) -> list[int]:
        files: list[int] = []
        try:
            for thread in self._system.threads() or (0,):
                try:
                    files.append(self._system.open(event, thread))
                except ProcessLookupError:  # the thread has ended meanwhile
                    continue
        except OSError:
            for file in files:
                self._system.close(file)
            raise
        return files

    def _value(self, file: int) -> float:
        value, enabled, counted = self._system.read(file)
        return value * enabled / counted if counted else 0.0


def _reason(code: int) -> str:
    if code in (errno.EACCES, errno.EPERM):
        level = _PARANOID.read_text().strip() if _PARANOID.exists() else "not known"
        return (
            f"the system does not allow perf_event_open (kernel.perf_event_paranoid is {level}; containers "
            "often forbid it)"
        )
    if code in (errno.ENOENT, errno.ENODEV, errno.EOPNOTSUPP):
        return "this machine exposes no hardware counters, as many virtual machines"
    return f"perf_event_open fails: {os.strerror(code)}"
