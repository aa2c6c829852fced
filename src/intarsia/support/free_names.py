"""Names that are not in use yet: the one place where numbers are appended to names until one is free."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from itertools import count


def free_name(wanted: str, taken: Container[str], suffix: str = "_{}", first: int = 1) -> str:
    """Return a name if it is free, else the name with the lowest number behind it that makes it free.

    Args:
        wanted: The name.
        taken: Names in use; the returned name is not added.
        suffix: Format of what is appended, with one field for the number.
        first: The lowest number.
    """
    if wanted not in taken:
        return wanted
    numbered = (wanted + suffix.format(number) for number in count(first))
    return next(name for name in numbered if name not in taken)


def numbered_names(stem: str, taken: Container[str] = ()) -> Iterator[str]:
    """Yield the stem with 0, 1, 2 ... behind it, without end and without the names in use.

    Args:
        stem: Beginning of all names.
        taken: Names in use. It is read when a name is wanted, so names may be added in between.
    """
    return (name for name in (f"{stem}{number}" for number in count()) if name not in taken)


class NameSupply:
    """Gives out names, each once: a wanted name itself, else with _1, _2 ... behind it.

    A supply gives the same names as `free_name` with a growing set does, in time linear in their number.

    Args:
        taken: Names that are in use from the start.
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._numbers: dict[str, int] = {}

    def fresh(self, wanted: str) -> str:
        """Return a name that has not been in use, and is from now on."""
        name = wanted
        while name in self._taken:
            number = self._numbers[wanted] = self._numbers.get(wanted, 0) + 1
            name = f"{wanted}_{number}"
        self._taken.add(name)
        return name

    def release(self, name: str) -> None:
        """Allow a name to be given out again; numbers behind a name still only grow."""
        self._taken.discard(name)
