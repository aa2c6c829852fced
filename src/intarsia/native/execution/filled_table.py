"""Tables of the same calls on memory at different addresses, made without a look at each call."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from intarsia.native.execution.call_table import BufferRef, CallTable, FixedAddress, KernelCall, Slot


class TableFiller:
    """A table of calls whose last slots get addresses.

    Args:
        table: The table.
        kept: Number of the first slots, which stay slots.
    """

    def __init__(self, table: CallTable, kept: int) -> None:
        self.table, self.kept = table, kept
        self._words = np.array(table._words, np.uint64)
        filled = [pair for pair in table._slot_words if pair[1] >= kept]
        self._places = np.array([word for word, _ in filled], np.int64)
        self._slots = np.array([slot - kept for _, slot in filled], np.int64)
        self._slot_words = tuple(pair for pair in table._slot_words if pair[1] < kept)

    def filled(self, addresses: npt.NDArray[np.int64], owner: object) -> CallTable:
        """Return the table with an address for each slot but the first ones.

        Args:
            addresses: The addresses; the caller must ensure that the memory there fits the kernels.
            owner: Object that keeps the memory alive.
        """
        words = self._words.copy()
        words[self._places] = addresses[self._slots].astype(np.uint64)
        return _FilledTable(self, words, addresses, owner)

    @property
    def slot_words(self) -> tuple[tuple[int, int], ...]:
        """Pairs of a word and the slot that it gets, for the first slots."""
        return self._slot_words


class _FilledTable(CallTable):
    """A table that a `TableFiller` filled; its calls are written out when they are read."""

    def __init__(
        self,
        filler: TableFiller,
        words: npt.NDArray[np.uint64],
        addresses: npt.NDArray[np.int64],
        owner: object,
    ) -> None:
        whole = filler.table
        for name, value in (
            ("slots", 1 + max((position for _, position in filler.slot_words), default=-1)),
            ("scratch_bytes", whole.scratch_bytes),
            ("_words", words.tolist()),
            ("_pointers", whole._pointers),
            ("_slot_words", filler.slot_words),
            ("is_checked", whole.is_checked),
            ("_idle", []),
            ("_few", {}),
            ("_filler", filler),
            ("_addresses", addresses),
            ("_owner", owner),
        ):
            object.__setattr__(self, name, value)

    @property
    def calls(self) -> tuple[KernelCall, ...]:
        """As `CallTable.calls`."""
        filler: TableFiller = self.__dict__["_filler"]
        addresses: npt.NDArray[np.int64] = self.__dict__["_addresses"]

        def buffer(given: BufferRef) -> BufferRef:
            if not isinstance(given, Slot) or given.position < filler.kept:
                return given
            return FixedAddress(int(addresses[given.position - filler.kept]), self.__dict__["_owner"])

        return tuple(replace(call, buffers=tuple(map(buffer, call.buffers))) for call in filler.table.calls)
