"""Names of the functions that partitions become."""

from __future__ import annotations

import re
from collections.abc import Iterable

from intarsia.support.free_names import NameSupply

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_]")


class PartitionNames:
    """Gives out names that C and every toolchain accept, each once.

    Args:
        taken: Names that are not to be given out.
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._supply = NameSupply(taken)

    def fresh(self, *hints: str) -> str:
        """Return a new name: `collage` and the hints joined by "_", and "_1", "_2" ... where that is taken.

        Empty hints are left out; characters that C has not in names become "_".
        """
        return self._supply.fresh(_NOT_IN_NAMES.sub("_", "_".join(("collage", *filter(None, hints)))))
