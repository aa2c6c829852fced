"""Names that are not taken yet."""

from __future__ import annotations

import re
from collections.abc import Iterable

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_]")


class NameSupply:
    """Gives out names that C and every toolchain accept, each once.

    Args:
        prefix: Prefix of all names; "" for none.
        taken: Names that are not to be given out.
    """

    def __init__(self, prefix: str = "", taken: Iterable[str] = ()) -> None:
        self._prefix = prefix
        self._taken = set(taken)
        self._next: dict[str, int] = {}

    def fresh(self, *hints: str) -> str:
        """A new name: the prefix and the hints joined by "_", and "_1", "_2" ... where that is taken.

        Empty hints are left out; characters that C has not in names become "_".
        """
        wanted = _NOT_IN_NAMES.sub("_", "_".join(filter(None, (self._prefix, *hints)))) or "_"
        if wanted[0].isdigit():
            wanted = f"_{wanted}"
        count, name = self._next.get(wanted, 0), wanted
        if count:
            name = f"{wanted}_{count}"
        while name in self._taken:
            count += 1
            name = f"{wanted}_{count}"
        self._next[wanted] = count + 1
        self._taken.add(name)
        return name

    def reserve(self, name: str) -> None:
        """Take a name that exists, so that it is not given out."""
        self._taken.add(name)

    def sub_supply(self, *hints: str) -> NameSupply:
        """A supply whose names begin with this one's prefix and the hints, and that takes from the same."""
        made = NameSupply("_".join(filter(None, (self._prefix, *hints))))
        made._taken, made._next = self._taken, self._next
        return made
