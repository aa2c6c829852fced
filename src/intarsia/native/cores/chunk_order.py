"""Which core runs which chunk of a parallel loop when: protocols of the driver on simulated cores."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from intarsia.target.machine_model import MachineModel

_MOVES_OF_BARRIER: Final = 3
"""Moves of a line in the barrier of two cores by which `barrier_cycles` is measured, one after the other: the
number of the loop to the worker, the line of what is done to the worker, and that to the caller."""


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
    """Return the first iteration of each chunk, and the one behind its last; sizes differ by one at most.

    The longer chunks are spread evenly, so that ranges of as many chunks have as many iterations.
    """
    return list(pairwise(-(-number * extent // chunks) for number in range(chunks + 1)))


def run_loop(
    chunks: int,
    cores: int,
    machine: MachineModel,
    run_chunk: Callable[[int, int], float],
    seed: int = 0,
) -> LoopTime:
    """Simulate a parallel loop.

    Each core has a range of the chunks. A claim from the range of another core, the next claim of that core,
    and the note that chunks are done move a line to the core that makes them; moves of one line are one after
    the other. Core 0 is the caller. Cores that could claim at the same time do it in an order that is drawn.
    Ranges are taken from the front in every loop: that caches end somewhere is left out.

    Args:
        chunks: Number of chunks.
        cores: Number of cores, one for each thread.
        machine: Model of the machine.
        run_chunk: Called with the number of a core and of a chunk, in order of time; returns its cycles.
        seed: Seed of the order of cores at the same time.
    """
    if cores == 1 or chunks == 1:
        alone = sum(run_chunk(0, chunk) for chunk in range(chunks))
        return LoopTime(alone, (alone, *(0.0,) * (cores - 1)))
    draw, move = np.random.default_rng(seed), move_cycles(machine)
    ranges = _Ranges(chunks, cores)
    waiting = [(move if core else 0.0, draw.random(), core) for core in range(cores)]
    heapq.heapify(waiting)
    line_free, busy, over = [0.0] * cores, [0.0] * cores, [0.0] * cores
    while waiting:
        now, _, core = heapq.heappop(waiting)
        claim = ranges.claim(core)
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
    """A claimed chunk: its number, the core in whose range it is, whether that ticket need not move."""

    chunk: int
    ticket: int
    is_local: bool


class _Ranges:
    """The chunks that are free in the range of each core; the first cores have those of a short loop."""

    def __init__(self, chunks: int, cores: int) -> None:
        borders = [-(-core * chunks // cores) for core in range(cores + 1)]
        self._free = [deque(range(*border)) for border in pairwise(borders)]
        self._holders = list(range(cores))

    def claim(self, core: int) -> _Claim | None:
        """Take a free chunk for a core: the next one of its range, else the last one of another range."""
        for step in range(len(self._free)):
            ticket = (core + step) % len(self._free)
            free = self._free[ticket]
            if free:
                is_local, self._holders[ticket] = self._holders[ticket] == core, core
                return _Claim(free.pop() if step else free.popleft(), ticket, is_local)
        return None
