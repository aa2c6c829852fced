"""What callbacks are where a caller gives none."""

from __future__ import annotations


def silent(*_: object) -> None:
    """Ignore what is reported: the default of progress and note callbacks."""


def never() -> bool:
    """Return False: the default of stop flags, which return True to stop."""
    return False
