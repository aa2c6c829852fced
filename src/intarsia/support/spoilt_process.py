"""Whether something has happened to this process after which it cannot do its work any more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(slots=True)
class _Process:
    """This process.

    Attributes:
        is_spoilt: Whether another process has to do its work.
    """

    is_spoilt: bool = False


_PROCESS: Final = _Process()


def spoil_process() -> None:
    """Record that another process has to do the work of this one: a worker is replaced after its task."""
    _PROCESS.is_spoilt = True


def is_process_spoilt() -> bool:
    """Return whether `spoil_process` was called in this process."""
    return _PROCESS.is_spoilt
