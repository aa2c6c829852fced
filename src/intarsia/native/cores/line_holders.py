"""Which cores have the present content of each cache line, as the protocol of coherent caches keeps it."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from intarsia.native.cores.touched_lines import Lines

MOST_CORES: Final = 64
"""Number of cores that a word has bits for."""
_NOBODY: Final = -1


class LineHolders:
    """The holders and the last writer of each line.

    Caches are as large as needed: a line leaves a core when another one writes it.

    Args:
        count: Number of lines.
    """

    def __init__(self, count: int) -> None:
        self._holders: npt.NDArray[Any] = np.zeros(count, np.uint64)
        self._writers: npt.NDArray[Any] = np.full(count, _NOBODY, np.int8)

    def read(self, core: int, lines: Lines) -> int:
        """Let a core read lines; return how many it gets that another core wrote last."""
        moved = self._moved(core, lines)
        self._holders[lines] |= np.uint64(1 << core)
        return moved

    def write(self, core: int, lines: Lines) -> int:
        """Let a core write lines, of which no other has a copy then.

        Returns:
            The number of lines that it gets for that and that another core wrote last.
        """
        moved = self._moved(core, lines)
        self._holders[lines] = np.uint64(1 << core)
        self._writers[lines] = core
        return moved

    def _moved(self, core: int, lines: Lines) -> int:
        """Return the number of lines that a core lacks and that another core wrote last."""
        lacks = (self._holders[lines] & np.uint64(1 << core)) == 0
        writers = self._writers[lines]
        return int(np.count_nonzero(lacks & (writers != _NOBODY) & (writers != core)))
