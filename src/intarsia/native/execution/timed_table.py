"""Call tables with the time of each call, and of the parts of their parallel loops on each thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from intarsia.native.execution.array_parameter import ArrayParameter
from intarsia.native.execution.call_table import CallTable, KernelCall
from intarsia.native.execution.driver import process_driver
from intarsia.native.execution.driver_log_text import LOG_HEADER_BYTES, LOG_RECORD_BYTES
from intarsia.native.execution.driver_text import END_LOOP_LOG, START_LOOP_LOG, TIMESTAMP
from intarsia.native.execution.native_function import NativeFunction
from intarsia.native.execution.partial_loops import PartialLoops
from intarsia.native.execution.thread_pool import ThreadPool

_STAMP: Final = ArrayParameter("stamp", (1,), np.dtype(np.int64), is_written=True)
_WORD: Final = 8
_HEADER: Final = LOG_HEADER_BYTES // _WORD
_RECORD: Final = LOG_RECORD_BYTES // _WORD
_PARTS_OF_CALL: Final = 64
"""Parts of parallel loops that a log holds for each call, on average."""


class LoopLog:
    """Which thread ran which part of a parallel loop when; usable by one run at a time.

    Args:
        most_parts: Number of parts that it holds; what does not fit is counted.
    """

    def __init__(self, most_parts: int) -> None:
        self._words: npt.NDArray[Any] = np.zeros(_HEADER + _RECORD * most_parts, np.int64)
        self._words[1] = most_parts

    @property
    def words(self) -> npt.NDArray[Any]:
        """The memory that the driver writes."""
        return self._words

    @property
    def count(self) -> int:
        """Number of parts of the last run, with those that did not fit."""
        return int(self._words[0])

    @property
    def caller(self) -> int:
        """Number that the system gives to the thread that ran the table."""
        return int(self._words[2])

    def records(self) -> npt.NDArray[Any]:
        """Return a copy of the parts that it holds, (parts, 3), in no order: thread, start and end."""
        return self._words[_HEADER:].reshape(-1, _RECORD)[: self.count].copy()


def sorted_parts(records: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the parts of a log by their starts."""
    return records[np.argsort(records[:, 1], kind="stable")]


class TimedTable:
    """The calls of a table, with a timestamp before each and behind the last.

    The driver runs timestamps as calls, so that a timed run does not return to Python between kernels, and a
    table that is not timed pays nothing. A timestamp takes about 50 ns.

    Args:
        table: The calls; code and arrays are shared with it.
        logs_loops: Whether the parts of parallel loops are logged, at about 0.2 us for each part.

    Attributes:
        table: Table of calls and timestamps, with the slots of the given one.
        stamps: Nanoseconds of CLOCK_MONOTONIC at the start of each call and at the end, of the last run.
        log: Parts of the parallel loops of the last run; None if they are not logged.
    """

    def __init__(self, table: CallTable, *, logs_loops: bool = False) -> None:
        driver = process_driver()
        stamp = NativeFunction(TIMESTAMP, (_STAMP,), 0, driver.timestamp, driver.code)
        self.stamps: npt.NDArray[Any] = np.zeros(len(table.calls) + 1, np.int64)
        places = [self.stamps[number : number + 1] for number in range(len(self.stamps))]
        stamps = [KernelCall(stamp, (place,)) for place in places]
        timed = [call for pair in zip(stamps, table.calls, strict=False) for call in pair]
        calls = (*timed, stamps[-1])
        self.log = LoopLog(_PARTS_OF_CALL * len(table.calls)) if logs_loops else None
        if self.log is not None:
            words = self.log.words
            parameter = ArrayParameter("log", words.shape, words.dtype, is_written=True)
            start = NativeFunction(START_LOOP_LOG, (parameter,), 0, driver.start_loop_log, driver.code)
            end = NativeFunction(END_LOOP_LOG, (), 0, driver.end_loop_log, driver.code)
            calls = (KernelCall(start, (words,)), *calls, KernelCall(end, ()))
        self.table = CallTable(calls)


@dataclass(frozen=True, eq=False)
class SteppedTable(CallTable):
    """A table whose calls are each run by a call from Python of its own.

    Attributes:
        pause: Function that is called before each call and behind the last.
    """

    pause: Callable[[], None]

    def run(self, pool: ThreadPool | PartialLoops, addresses: Sequence[int] = ()) -> None:
        """As `CallTable.run`."""
        for call in self.calls:
            self.pause()
            table = CallTable((call,))
            table.run(pool, addresses[: table.slots])
        self.pause()
