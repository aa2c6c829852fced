"""How far the devices of one run have come, and whether they are to go on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition


class RunStoppedError(Exception):
    """Another device has failed, or the caller has given up: this one does nothing more."""


class Progress:
    """Turns that are done, by device; a device waits here for another one.

    Args:
        devices: How many there are.

    Attributes:
        error: What went wrong first, if anything did.
    """

    def __init__(self, devices: int) -> None:
        self.error: BaseException | None = None
        self._done = [-1] * devices
        self._changed = Condition()

    def announce(self, device: int, turn: int) -> None:
        """A device has done that turn, and all before it."""
        with self._changed:
            self._done[device] = turn
            self._changed.notify_all()

    def wait_for(self, device: int, turn: int) -> None:
        """Wait until a device has done that turn.

        Raises:
            RunStoppedError: It will not.
        """
        if self._done[device] >= turn:  # the usual case needs no lock
            return
        with self._changed:
            self._changed.wait_for(lambda: self.error is not None or self._done[device] >= turn)
        self.check()

    def check(self) -> None:
        """Do nothing if the run is to go on.

        Raises:
            RunStoppedError: It is not.
        """
        if self.error is not None:
            raise RunStoppedError

    def stop(self, error: BaseException) -> None:
        """Let no device begin anything more; the first error counts."""
        with self._changed:
            if self.error is None:
                self.error = error
            self._changed.notify_all()

    @contextmanager
    def stopping(self) -> Iterator[None]:
        """What goes wrong in the block stops the run, and is not raised: whoever waits for it raises it."""
        try:
            yield
        except RunStoppedError:
            pass
        except BaseException as error:  # one device must not be waited for in vain, whatever has happened
            self.stop(error)
