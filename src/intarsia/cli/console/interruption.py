"""Signals that end the process, as exceptions: every `finally` on the way removes what it has made."""

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
"""Further signals are ignored for so long: launchers pass on the Ctrl-C that the terminal has sent too."""

REPEAT_SECONDS: Final = 0.2
"""A second Ctrl-C within so short a time is the first one, passed on by a launcher."""

_HANDLED: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(BaseException):
    """The user or the system ends the process.

    Attributes:
        signal: By which signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.signal = signal.Signals(number)

    @property
    def word(self) -> str:
        """What has happened, for people."""
        return "interrupted" if self.signal is signal.SIGINT else f"stopped by {self.signal.name}"

    @property
    def exit_code(self) -> int:
        """As shells report a process that the signal has ended: 130 for Ctrl-C."""
        return 128 + self.signal


@contextmanager
def interruptible() -> Iterator[None]:
    """Signals raise `Interrupted` inside the block; those that are ignored already stay so.

    Without effect outside of the main thread, where Python takes no signals.
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
    """Within the block the first Ctrl-C is a wish to stop soon, and only the second raises `Interrupted`.

    Args:
        on_wish: Called at the first one.

    Yields:
        Tells whether there is a wish.
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
