"""Executables for certain sizes, the ones that were used last."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import TypeAlias

from intarsia.runtime.executable import Executable

Sizes: TypeAlias = tuple[int, ...]
"""A size for each symbolic dimension, in the order of their names."""


class SizedExecutables:
    """Keeps a number of executables by their sizes; the one that was not used for longest leaves first.

    Args:
        most: Maximum number of executables.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._by_sizes: OrderedDict[Sizes, Executable] = OrderedDict()
        self._lock = Lock()

    def find(self, sizes: Sizes) -> Executable | None:
        """Return the executable for some sizes, which counts as its use."""
        with self._lock:
            executable = self._by_sizes.get(sizes)
            if executable is not None:
                self._by_sizes.move_to_end(sizes)
            return executable

    def add(self, sizes: Sizes, executable: Executable) -> Sizes | None:
        """Add an executable; return the sizes of the one that leaves for it.

        It is not closed: a call of another thread may be under way. It is let go of after it.
        """
        with self._lock:
            self._by_sizes[sizes] = executable
            if len(self._by_sizes) <= self._most:
                return None
            return self._by_sizes.popitem(last=False)[0]

    def clear(self) -> None:
        """Let go of all executables."""
        with self._lock:
            self._by_sizes.clear()

    def __len__(self) -> int:
        return len(self._by_sizes)
