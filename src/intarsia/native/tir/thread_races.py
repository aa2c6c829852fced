"""The threads of a kernel as generators, and a check that no two of them race for an element.

A race is a pair of accesses to one element by two threads, at least one of which writes, without a barrier of
their common block in between. Threads of different blocks have no barrier in common.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import NamedTuple

from intarsia.support.errors import ExecutionError


class _Access(NamedTuple):
    block: int
    thread: int
    epoch: int


@dataclass(slots=True)
class KernelClock:
    """The clock of a kernel: its block, its thread, and the number of barriers that the block passed."""

    block: int = 0
    thread: int = 0
    epoch: int = 0

    def run_threads(self, block: int, extent: int, body: Callable[[int], Generator[int, None, None]]) -> None:
        """Run the threads of one block, from barrier to barrier in the order of their numbers.

        Args:
            block: Number of the block.
            extent: Number of threads.
            body: Generator function of one thread; it yields the number of each barrier that it reaches.

        Raises:
            ExecutionError: Threads of one block do not reach the same barriers, or race.
        """
        self.block, self.epoch = block, 0
        threads = [body(number) for number in range(extent)]
        while True:
            reached = [self._advance(number, thread) for number, thread in enumerate(threads)]
            if len(set(reached)) > 1:
                raise ExecutionError("threads of one block wait at different barriers, or at none")
            if not reached or reached[0] is None:
                return
            self.epoch += 1

    def _advance(self, number: int, thread: Generator[int, None, None]) -> int | None:
        self.thread = number
        return next(thread, None)


@dataclass(slots=True)
class AccessCheck:
    """The accesses to one buffer in one kernel.

    Attributes:
        name: Name of the buffer.
        clock: Clock of the kernel.
        writes: Last write of each element, by offset.
        reads: Last read of each element by each thread since the kernel began.
    """

    name: str
    clock: KernelClock
    writes: dict[int, _Access] = field(default_factory=dict)
    reads: dict[int, dict[tuple[int, int], _Access]] = field(default_factory=dict)

    def note_read(self, offset: int) -> None:
        """Note a read of an element.

        Raises:
            ExecutionError: Another thread has written the element without a barrier in between.
        """
        access = self._now()
        self._check(offset, self.writes.get(offset), access)
        self.reads.setdefault(offset, {})[access.block, access.thread] = access

    def note_write(self, offset: int) -> None:
        """Note a write of an element.

        Raises:
            ExecutionError: Another thread has read or written it without a barrier in between.
        """
        access = self._now()
        self._check(offset, self.writes.get(offset), access)
        for earlier in self.reads.get(offset, {}).values():
            self._check(offset, earlier, access)
        self.reads.pop(offset, None)
        self.writes[offset] = access

    def _now(self) -> _Access:
        return _Access(self.clock.block, self.clock.thread, self.clock.epoch)

    def _check(self, offset: int, earlier: _Access | None, access: _Access) -> None:
        if earlier is None or earlier[:2] == access[:2]:
            return
        if earlier.block == access.block and earlier.epoch < access.epoch:
            return
        raise ExecutionError(
            f"threads {earlier.thread} of block {earlier.block} and {access.thread} of block {access.block} "
            f"race for element {offset} of {self.name}",
            help="a barrier has to stand between the two accesses, or each thread needs elements of its own",
        )
