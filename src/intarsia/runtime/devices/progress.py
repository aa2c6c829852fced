"""Completed turns of the devices in one run, and the first error, which stops the run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition


class RunStoppedError(Exception):
    """Another device has failed, or the caller was interrupted: this device stops."""


class Progress:
    """Completed turns by device; a device waits here for another one.

    Args:
        devices: Number of devices.

    Attributes:
        error: First error of any device, if there was one.
    """

    def __init__(self, devices: int) -> None:
        self.error: BaseException | None = None
        self._done = [-1] * devices
        self._changed = Condition()

    def announce(self, device: int, turn: int) -> None:
        """Record that a device has completed a turn and all turns before it."""
        with self._changed:
            self._done[device] = turn
            self._changed.notify_all()

    def wait_for(self, device: int, turn: int) -> None:
        """Wait until a device has completed a turn.

        Raises:
            RunStoppedError: The run was stopped.
        """
        # Lock-free fast path: reading a list item is atomic under the GIL, and the count only grows.
        if self._done[device] >= turn:
            return
        with self._changed:
            self._changed.wait_for(lambda: self.error is not None or self._done[device] >= turn)
        self.check()

    def check(self) -> None:
        """Raise if the run was stopped.

        Raises:
            RunStoppedError: The run was stopped.
        """
        if self.error is not None:
            raise RunStoppedError

    def stop(self, error: BaseException) -> None:
        """Stop the run: no device begins another step. The first error is kept."""
        with self._changed:
            if self.error is None:
                self.error = error
            self._changed.notify_all()

    @contextmanager
    def stopping(self) -> Iterator[None]:
        """Stop the run at an exception in the block, without raising it: the caller's thread raises it."""
        try:
            yield
        except RunStoppedError:
            pass
        except BaseException as error:  # one device must not be waited for in vain, whatever has happened
            self.stop(error)
