"""Call tables with the time of each call."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from intarsia.native.execution.array_parameter import ArrayParameter
from intarsia.native.execution.call_table import CallTable, KernelCall
from intarsia.native.execution.driver import process_driver
from intarsia.native.execution.driver_text import TIMESTAMP
from intarsia.native.execution.native_function import NativeFunction

_STAMP: Final = ArrayParameter("stamp", (1,), np.dtype(np.int64), is_written=True)


class TimedTable:
    """The calls of a table, with a timestamp before each and behind the last.

    The driver runs timestamps as calls, so that a timed run does not return to Python between kernels, and a
    table that is not timed pays nothing. A timestamp takes about 50 ns.

    Args:
        table: The calls; code and arrays are shared with it.

    Attributes:
        table: Table of calls and timestamps, with the slots of the given one.
        stamps: Nanoseconds of CLOCK_MONOTONIC at the start of each call and at the end, of the last run.
    """

    def __init__(self, table: CallTable) -> None:
        driver = process_driver()
        stamp = NativeFunction(TIMESTAMP, (_STAMP,), 0, driver.timestamp, driver.code)
        self.stamps: npt.NDArray[Any] = np.zeros(len(table.calls) + 1, np.int64)
        places = [self.stamps[number : number + 1] for number in range(len(self.stamps))]
        stamps = [KernelCall(stamp, (place,)) for place in places]
        timed = [call for pair in zip(stamps, table.calls, strict=False) for call in pair]
        self.table = CallTable((*timed, stamps[-1]))
