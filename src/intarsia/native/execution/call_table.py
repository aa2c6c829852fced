"""A region: consecutive kernel calls that one call from Python runs."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from intarsia.native.execution.array_parameter import ArrayParameter
from intarsia.native.execution.checked_run import run_checked
from intarsia.native.execution.driver_records import CallRecord
from intarsia.native.execution.native_function import NativeFunction
from intarsia.native.execution.partial_loops import PartialLoops
from intarsia.native.execution.thread_pool import ThreadPool
from intarsia.support.array_address import array_address
from intarsia.support.errors import InputError, UsageError

_WORD = 8
_MOST_REPEATED = 1024
"""Maximum number of repetitions whose records are in memory at the same time."""
_FEW: Final = 8
"""Number of repetitions up to which their table is kept: a table for one run takes some 20 us to make."""
_WORDS_OF_CALL = ctypes.sizeof(CallRecord) // _WORD


@dataclass(frozen=True)
class Slot:
    """A buffer whose address is passed when the region runs, by its position in the list of addresses."""

    position: int


@dataclass(frozen=True, slots=True)
class FixedAddress:
    """A buffer of which the caller ensures that it fits the kernel.

    Attributes:
        address: Address of the buffer.
        owner: Object that keeps the memory alive.
    """

    address: int
    owner: object = field(repr=False)


BufferRef: TypeAlias = "np.ndarray[Any, Any] | Slot | FixedAddress"


@dataclass(frozen=True, eq=False)
class KernelCall:
    """A kernel and its arguments: arrays or memory with fixed addresses, or slots.

    Raises:
        InputError: An array does not fit its parameter, or there are too many or too few.
    """

    function: NativeFunction
    buffers: tuple[BufferRef, ...]

    def __post_init__(self) -> None:
        expected = self.function.parameters
        if len(self.buffers) != len(expected):
            raise InputError(
                f"kernel {self.function.name!r} was given {len(self.buffers)} arrays, "
                f"expected {len(expected)}"
            )
        for parameter, buffer in zip(expected, self.buffers, strict=True):
            if not isinstance(buffer, Slot | FixedAddress):
                parameter.address_of(buffer)

    def shifted(self, slots: int) -> Self:
        """Return the call with each slot so many positions later."""
        moved = (
            Slot(buffer.position + slots) if isinstance(buffer, Slot) else buffer for buffer in self.buffers
        )
        return replace(self, buffers=tuple(moved))


class _RecordBlock:
    """Memory of one running region with the records of all calls and their arguments."""

    def __init__(self, words: Sequence[int], pointers: Sequence[tuple[int, int]]) -> None:
        self.words = (ctypes.c_uint64 * max(1, len(words)))(*words)
        self.address = ctypes.addressof(self.words)
        for position, target in pointers:
            self.words[position] = self.address + target * _WORD


@dataclass(frozen=True, eq=False)
class CallTable:
    """Calls in the form that the driver runs; the table keeps alive everything that they need.

    Several Python threads may run it at once if its calls write only to slots, or if concurrent writes to its
    arrays are harmless: each running region has separate records.

    Attributes:
        calls: Kernel calls in the order in which they run.
        slots: Number of addresses that `run` takes.
        scratch_bytes: Scratch memory that the kernels need in each thread, in bytes.
        is_checked: Whether a kernel checks its indices.
    """

    calls: tuple[KernelCall, ...]
    slots: int = field(init=False)
    scratch_bytes: int = field(init=False)
    _words: tuple[int, ...] = field(init=False, repr=False)
    _pointers: tuple[tuple[int, int], ...] = field(init=False, repr=False)
    _slot_words: tuple[tuple[int, int], ...] = field(init=False, repr=False)
    is_checked: bool = field(init=False, repr=False)
    _idle: list[_RecordBlock] = field(init=False, repr=False, default_factory=list)
    _few: dict[int, CallTable] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        # The records of all calls come first, then their arguments; a record points to its arguments by word
        # number,\nwhich becomes an address when the block gets its memory.
        words: list[int] = [0] * (_WORDS_OF_CALL * len(self.calls))
        pointers, slot_words = [], []
        for number, call in enumerate(self.calls):
            record = number * _WORDS_OF_CALL
            words[record] = call.function.address
            pointers.append((record + 1, len(words)))
            for parameter, buffer in zip(call.function.parameters, call.buffers, strict=True):
                if isinstance(buffer, Slot):
                    slot_words.append((len(words), _position(buffer)))
                words.append(_address(parameter, buffer))
        scratch = max((call.function.scratch_bytes for call in self.calls), default=0)
        for name, value in (
            ("slots", 1 + max((position for _, position in slot_words), default=-1)),
            ("scratch_bytes", scratch),
            ("_words", tuple(words)),
            ("_pointers", tuple(pointers)),
            ("_slot_words", tuple(slot_words)),
            ("is_checked", any(call.function.checks for call in self.calls)),
        ):
            object.__setattr__(self, name, value)

    def run(self, pool: ThreadPool | PartialLoops, addresses: Sequence[int] = ()) -> None:
        """Run all calls.

        Args:
            pool: Thread pool that runs them, or a part of their parallel loops.
            addresses: Addresses of the buffers in the slots; the caller must ensure that they fit the
                kernels.

        Raises:
            UsageError: There are more or fewer addresses than slots.
            ExecutionError: Bounds-checked code found an index out of bounds.
        """
        if len(addresses) != self.slots:
            raise UsageError(
                f"a region of native kernels was given {len(addresses)} buffers, not {self.slots}"
            )
        try:
            # `list.pop` and `append` are atomic under the interpreter lock, so the blocks need no lock of
            # their own.
            block = self._idle.pop()
        except IndexError:
            block = _RecordBlock(self._words, self._pointers)
        words = block.words
        for word, position in self._slot_words:
            words[word] = addresses[position]
        if self.is_checked:
            self._run_checked(block)
        else:
            pool.run(block.address, len(self._pointers), self.scratch_bytes)
        self._idle.append(block)

    def bind(self, pool: ThreadPool, addresses: Sequence[int]) -> Callable[[], None]:
        """Return a function that runs all calls on buffers whose addresses stay the same.

        It runs one call at a time. The caller must keep the buffers alive.

        Args:
            pool: Thread pool that runs them.
            addresses: Addresses of the buffers in the slots, as for `run`.

        Raises:
            UsageError: There are more or fewer addresses than slots, or the code is bounds-checked.
        """
        if len(addresses) != self.slots or self.is_checked:
            raise UsageError(
                f"a region of native kernels cannot be bound to {len(addresses)} buffers: it has "
                f"{self.slots} slots{' and checked indices' if self.is_checked else ''}"
            )
        block = _RecordBlock(self._words, self._pointers)
        for word, position in self._slot_words:
            block.words[word] = addresses[position]

        def run() -> None:
            pool.run(block.address, len(self._pointers), self.scratch_bytes)

        return run

    def run_repeatedly(self, pool: ThreadPool, addresses: npt.NDArray[np.int64]) -> None:
        """Run all calls again and again, without a return to Python in between.

        Args:
            pool: Thread pool that runs them.
            addresses: (repetitions, slots) addresses of the buffers; the caller must ensure that they fit the
                kernels.

        Raises:
            UsageError: There are more or fewer addresses than slots, or the code is bounds-checked.
        """
        if addresses.shape[1] != self.slots or self.is_checked:
            raise UsageError(f"a region of native kernels was given {addresses.shape} addresses")
        if len(addresses) <= _FEW:
            self._repeated(len(addresses)).run(pool, addresses.ravel().tolist())
            return
        records = len(self.calls) * _WORDS_OF_CALL
        for begin in range(0, len(addresses), _MOST_REPEATED):
            part = addresses[begin : begin + _MOST_REPEATED]
            words = np.tile(np.array(self._words, np.uint64), (len(part), 1))
            for word, position in self._slot_words:
                words[:, word] = part[:, position].astype(np.uint64)
            # Records follow each other, and so do arguments.
            arguments = np.ascontiguousarray(words[:, records:])
            table = np.ascontiguousarray(words[:, :records])
            firsts = array_address(arguments) + np.arange(len(part)) * (arguments.shape[1] * _WORD)
            for word, target in self._pointers:
                table[:, word] = (firsts + (target - records) * _WORD).astype(np.uint64)
            pool.run(array_address(table), len(part) * len(self.calls), self.scratch_bytes)

    def _repeated(self, count: int) -> CallTable:
        """Return a table of all calls several times, which is made once; the slots of each time follow."""
        table = self._few.get(count)
        if table is None:
            calls = (call.shifted(self.slots * number) for number in range(count) for call in self.calls)
            table = self._few[count] = CallTable(tuple(calls))
        return table

    def _run_checked(self, block: _RecordBlock) -> None:
        """Run the calls one by one, so that an index out of bounds stops the region at its kernel."""
        for number, call in enumerate(self.calls):
            function, address = call.function, block.address + number * _WORDS_OF_CALL * _WORD
            run_checked(address, function.name, function.checks, function.scratch_bytes)


def _address(parameter: ArrayParameter, buffer: BufferRef) -> int:
    """Return the address of a buffer; 0 for a slot."""
    match buffer:
        case Slot():
            return 0
        case FixedAddress(address=address):
            return address
        case _:
            return parameter.address_of(buffer)


def _position(slot: Slot) -> int:
    if slot.position < 0:
        raise UsageError(f"slot {slot.position}: positions begin at 0")
    return slot.position
