"""Clocks: where a measurement reads the time from."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeAlias

Clock: TypeAlias = Callable[[], int]
"""Function that returns the time in nanoseconds from an arbitrary start; it never goes back."""

MONOTONIC_CLOCK: Clock = time.perf_counter_ns
"""The clock of this machine with the finest resolution."""
