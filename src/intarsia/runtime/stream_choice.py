"""How a program is best run for many clients: streams, threads and batch, as measured on some machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MOST_STREAMS: Final = 1024
MOST_THREADS: Final = 4096
MOST_ITEMS: Final = 65536


@dataclass(frozen=True, slots=True, order=True)
class StreamChoice:
    """How a pool runs a program.

    Attributes:
        streams: Number of calls that run at the same time.
        threads: Number of threads of each stream.
        batch: Maximum number of items, along the first axis, of calls that are run as one.
    """

    streams: int
    threads: int
    batch: int = 1

    @property
    def is_possible(self) -> bool:
        """Whether every number is in its range."""
        limits = (self.streams, MOST_STREAMS), (self.threads, MOST_THREADS), (self.batch, MOST_ITEMS)
        return all(1 <= number <= most for number, most in limits)
