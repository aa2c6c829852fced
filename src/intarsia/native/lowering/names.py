"""Names of buffers and loop variables."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Final

_STRANGE: Final = re.compile(r"[^A-Za-z0-9_]+")


class Names:
    """Gives each buffer of a function a name that no other has."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._next: dict[str, int] = {}

    def fresh(self, wanted: str) -> str:
        """A name that was not taken, and is now: the wanted one if it can be."""
        name = wanted
        while name in self._taken:
            number = self._next.get(wanted, 1)
            self._next[wanted] = number + 1
            name = f"{wanted}_{number}"
        self._taken.add(name)
        return name


def loop_name(iterator: str, around: Collection[str]) -> str:
    """A plain name for an iterator such as i.0@j.0@, which no loop around it has."""
    plain = _STRANGE.sub("_", iterator).strip("_") or "unit"
    name, number = plain, 1
    while name in around:
        name, number = f"{plain}_{number}", number + 1
    return name
