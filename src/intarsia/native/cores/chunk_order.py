"""Which core runs which chunk of a parallel loop when: protocols of the driver on simulated cores."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Final

import numpy as np

from intarsia.target.machine_model import MachineModel

_MOVES_OF_BARRIER: Final = 4
"""Moves of a line in the barrier of two cores by which `barrier_cycles` is measured, one after the other: the
ticket to the worker, its claim, its count of what is done, and that to the caller."""


class Partition(StrEnum):
    """How the chunks of a loop are divided among the threads.

    QUEUE: There is one row of chunks; the caller takes the first one that is free, others the last one, as
        the driver does.
    RANGES: Each thread has the same part of the iterations in every loop of as many iterations, and takes
        chunks of others when it has none left. The driver does not do so: the simulation says what it would
        bring.
    """

    QUEUE = "queue"
    RANGES = "ranges"


@dataclass(frozen=True, slots=True)
class LoopTime:
    """The time of a parallel loop, in cycles.

    Attributes:
        whole: Cycles from its beginning until the caller goes on.
        busy: Cycles of each core in chunks.
    """

    whole: float
    busy: tuple[float, ...]


def move_cycles(machine: MachineModel) -> float:
    """Return the cycles until a core has a line that another one wrote."""
    return machine.barrier_cycles / _MOVES_OF_BARRIER


def chunk_bounds(extent: int, chunks: int) -> list[tuple[int, int]]:
    """Return the first iteration of each chunk, and the one behind its last; sizes differ by one at most."""
    size, longer = divmod(extent, chunks)
    starts = [number * size + min(number, longer) for number in range(chunks + 1)]
    return list(pairwise(starts))


def run_loop(
    chunks: int,
    cores: int,
    partition: Partition,
    machine: MachineModel,
    run_chunk: Callable[[int, int], float],
    seed: int = 0,
) -> LoopTime:
    """Simulate a parallel loop.

    A claim of a chunk, and the note that chunks are done, move a line to the core that makes them; moves of
    one line are one after the other. Core 0 is the caller. Cores that could claim at the same time do it in
    an order that is drawn.

    Args:
        chunks: Number of chunks.
        cores: Number of cores, one for each thread.
        partition: Division of the chunks.
        machine: Model of the machine.
        run_chunk: Called with the number of a core and of a chunk, in order of time; returns its cycles.
        seed: Seed of the order of cores at the same time.
    """
    if cores == 1 or chunks == 1:
        alone = sum(run_chunk(0, chunk) for chunk in range(chunks))
        return LoopTime(alone, (alone, *(0.0,) * (cores - 1)))
    draw, move = np.random.default_rng(seed), move_cycles(machine)
    rows = _Rows(chunks, cores, partition)
    starts = [move * rows.tickets_before(core) for core in range(cores)]
    waiting = [(starts[core], draw.random(), core) for core in range(cores)]
    heapq.heapify(waiting)
    line_free, busy, over = [0.0] * rows.tickets, [0.0] * cores, [0.0] * cores
    while waiting:
        now, _, core = heapq.heappop(waiting)
        claim = rows.claim(core)
        if claim is None:
            continue
        if not claim.is_local:
            now = line_free[claim.ticket] = max(now, line_free[claim.ticket]) + move
        cycles = run_chunk(core, claim.chunk)
        busy[core] += cycles
        over[core] = now + cycles
        heapq.heappush(waiting, (now + cycles, draw.random(), core))
    return LoopTime(_joined(over, move), tuple(busy))


def _joined(over: list[float], move: float) -> float:
    """Return when the caller sees that all workers are done, each of which counts up one number."""
    counted = 0.0
    for time in sorted(over[1:]):
        if time:
            counted = max(counted, time) + move
    return max(over[0], counted + move) if counted else over[0]


@dataclass(frozen=True, slots=True)
class _Claim:
    """A claimed chunk: its number, the number of its ticket, whether that is in the cache of the core."""

    chunk: int
    ticket: int
    is_local: bool


class _Rows:
    """The chunks that are free, in one row or in one for each core."""

    def __init__(self, chunks: int, cores: int, partition: Partition) -> None:
        self._is_queue = partition is Partition.QUEUE
        borders = [core * chunks // cores for core in range(cores + 1)]
        ranges = [range(chunks)] if self._is_queue else map(range, borders, borders[1:])
        self._rows = [deque(numbers) for numbers in ranges]
        self._touched: set[int] = set()

    @property
    def tickets(self) -> int:
        """Number of rows, each with a ticket on a line of its own."""
        return len(self._rows)

    def tickets_before(self, core: int) -> int:
        """Return the number of moves until a core sees that the loop begins; 0 for the caller."""
        if not core:
            return 0 if self._is_queue else self.tickets - 1  # the caller writes all tickets first
        return 1 if self._is_queue else core + 1

    def claim(self, core: int) -> _Claim | None:
        """Take a free chunk for a core: the next one of its row, else the last one of another row."""
        if self._is_queue:
            row = self._rows[0]
            return _Claim(row.popleft() if core == 0 else row.pop(), 0, is_local=False) if row else None
        if self._rows[core]:
            is_local = core in self._touched or core == 0
            self._touched.add(core)
            return _Claim(self._rows[core].popleft(), core, is_local)
        for step in range(1, self.tickets):
            other = (core + step) % self.tickets
            if self._rows[other]:
                self._touched.discard(other)
                return _Claim(self._rows[other].pop(), other, is_local=False)
        return None
