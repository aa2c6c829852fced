"""Signals that end the process, as exceptions, so that every `finally` block cleans up."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

from intarsia.support.callbacks import never

GRACE_SECONDS: Final = 1.0
"""Seconds in which further signals are ignored: launchers forward the Ctrl-C that the terminal sends too."""

REPEAT_SECONDS: Final = 0.2
"""Seconds in which a second Ctrl-C counts as the first one, forwarded by a launcher."""

_HANDLED: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(BaseException):
    """A signal of the user or the system to end the process.

    Attributes:
        signal: Received signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.signal = signal.Signals(number)

    @property
    def word(self) -> str:
        """Message for the user."""
        return "interrupted" if self.signal is signal.SIGINT else f"stopped by {self.signal.name}"

    @property
    def exit_code(self) -> int:
        """Exit code of shells for a process that the signal has ended: 130 for Ctrl-C."""
        return 128 + self.signal


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise `Interrupted` inside the block for signals, except those that are ignored already.

    It has no effect outside of the main thread, where Python receives no signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = _handler(time.monotonic)
    previous = {number: signal.getsignal(number) for number in _HANDLED}
    for number in _HANDLED:
        if previous[number] is not signal.SIG_IGN:
            signal.signal(number, handler)
    try:
        yield
    finally:
        for number, old in previous.items():
            signal.signal(number, old)


def _handler(clock: Callable[[], float]) -> Callable[[int, FrameType | None], None]:
    last = -GRACE_SECONDS

    def handle(number: int, _frame: FrameType | None) -> None:
        nonlocal last
        now = clock()
        if now - last >= GRACE_SECONDS:
            last = now
            raise Interrupted(number)

    return handle


@contextmanager
def stoppable(on_wish: Callable[[], object]) -> Iterator[Callable[[], bool]]:
    """Turn the first Ctrl-C inside the block into a stop flag; only the second raises `Interrupted`.

    Args:
        on_wish: Function that is called at the first Ctrl-C.

    Yields:
        Function that returns true after the first Ctrl-C.
    """
    wished_at: list[float] = []

    def handle(number: int, _frame: FrameType | None) -> None:
        now = time.monotonic()
        if not wished_at:
            wished_at.append(now)
            on_wish()
        elif now - wished_at[0] >= REPEAT_SECONDS:
            raise Interrupted(number)

    is_ours = threading.current_thread() is threading.main_thread()
    previous = signal.getsignal(signal.SIGINT) if is_ours else signal.SIG_IGN
    if previous is signal.SIG_IGN:  # as `interruptible` leaves it
        yield never
        return
    signal.signal(signal.SIGINT, handle)
    try:
        yield lambda: bool(wished_at)
    finally:
        signal.signal(signal.SIGINT, previous)
