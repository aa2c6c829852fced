"""What a tuning run makes best, and how many clients it does so for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from intarsia.runtime.stream_choice import MOST_ITEMS
from intarsia.support.errors import UsageError


class Objective(StrEnum):
    """What a tuning run makes best."""

    LATENCY = "latency"
    """The time of one call on all threads."""
    THROUGHPUT = "throughput"
    """The requests per second of many clients."""
    P99 = "p99"
    """The latency that 99 of 100 requests of many clients stay within."""


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """The load for which a pool is chosen.

    Attributes:
        objective: Objective of the run.
        concurrency: Number of requests under way at saturation, 1 or more; None for 4 for each core.
        batches: Smallest and largest number of items of joined calls.

    Raises:
        UsageError: A number is out of range.
    """

    objective: Objective = Objective.LATENCY
    concurrency: int | None = None
    batches: tuple[int, int] = (1, 1)

    def __post_init__(self) -> None:
        if self.concurrency is not None and self.concurrency < 1:
            raise UsageError(f"concurrency is {self.concurrency}, expected 1 or more")
        low, high = self.batches
        if not 1 <= low <= high <= MOST_ITEMS:
            raise UsageError(f"batch is {low}..{high}, expected a range from 1 to {MOST_ITEMS}")
        if self.objective is Objective.LATENCY and (self.concurrency is not None or self.batches != (1, 1)):
            raise UsageError(
                "concurrency and batch are for throughput and p99",
                help="give --objective throughput as well",
            )


def read_objective(text: Objective | str) -> Objective:
    """Return the objective of a name.

    Raises:
        UsageError: There is none of that name.
    """
    try:
        return Objective(text)
    except ValueError:
        raise UsageError(f'objective is "{text}", expected {", ".join(Objective)}') from None


def read_batches(value: str | int | tuple[int, int]) -> tuple[int, int]:
    """Return the smallest and largest batch of "1..16", "8", 8 or (1, 16).

    Raises:
        UsageError: It cannot be read.
    """
    if isinstance(value, int):
        return value, value
    if isinstance(value, tuple):
        return value
    match = re.fullmatch(r"(\d{1,9})(?:\.\.(\d{1,9}))?", value.strip())
    if match is None:
        raise UsageError(f'batch is "{value}", expected a number or a range', help="such as 8 or 1..16")
    return int(match[1]), int(match[2] or match[1])
