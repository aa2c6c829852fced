"""The best placement on devices: exact on small programs, good ones on others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import inf
from typing import Final

from intarsia.collage.device_placement.device_problem import Assignment, DeviceProblem, Schedule

EXACT_NODES: Final = 200_000
"""So many partial placements are looked at before the search gives up the proof."""

_SWEEPS: Final = 8


@dataclass(frozen=True, slots=True)
class DeviceSearchResult:
    """What a search has found.

    Attributes:
        assignment: The best placement.
        seconds: Predicted time by the model.
        is_exact: Whether no other one is better.
        bound: No placement takes less; `seconds` if it is exact.
    """

    assignment: Assignment
    seconds: float
    is_exact: bool
    bound: float


def search_devices(problem: DeviceProblem, nodes: int = EXACT_NODES) -> DeviceSearchResult:
    """The best placement by the model.

    Placements are improved by moving tasks, then the rest is excluded by branch and bound, in the order of
    the tasks: what is placed already, and the longest path behind each task, bound the time from
    below. Indistinguishable devices are tried in one order only. The proof takes exponential time at
    worst, and ends after so many `nodes`; what comes before it is quadratic.

    Args:
        problem: Problem to solve.
        nodes: Partial placements to look at, at most.
    """
    if not problem.tasks:
        return DeviceSearchResult((), 0.0, True, 0.0)
    start = min((improved(problem, each) for each in seeds(problem)), key=problem.makespan)
    search = _BranchAndBound(problem, start, nodes)
    search.run()
    return DeviceSearchResult(search.best, search.seconds, search.is_exact, search.bound)


def seeds(problem: DeviceProblem) -> Iterator[Assignment]:
    """Placements to begin with: all that can be on one device; and each task where it ends first."""
    for device in range(problem.devices):
        yield tuple(
            device if device in open_ else min(open_, key=task.seconds.__getitem__)
            for task, open_ in zip(problem.tasks, problem.open_devices, strict=True)
        )
    schedule, assignment = Schedule(problem), list[int]()
    for number, open_ in enumerate(problem.open_devices):
        ends = {}
        for device in open_:
            ends[device] = schedule.run(number, device)
            schedule.take_back()
        assignment.append(min(ends, key=ends.__getitem__))
        schedule.run(number, assignment[-1])
    yield tuple(assignment)


def improved(problem: DeviceProblem, assignment: Assignment) -> Assignment:
    """A placement after moves that make it faster: of chains of tasks, and of single ones.

    Each sweep tries every move once, at linear cost at most.
    """
    placement = _Placement(problem, assignment)
    moves = [*_chains(problem), *((number,) for number in range(len(problem.tasks)))]
    for _ in range(_SWEEPS):
        before = placement.seconds
        for group, device in product(moves, range(problem.devices)):
            if all(device in problem.open_devices[number] for number in group):
                placement.move(group, device)
        if placement.seconds == before:
            break
    return tuple(placement.devices)


class _Placement:
    """A placement that is made better move by move; what stands before the tasks that move is run once.

    Attributes:
        devices: Device of each task.
        seconds: Predicted time by the model.
    """

    def __init__(self, problem: DeviceProblem, assignment: Assignment) -> None:
        self.devices, self.seconds = list(assignment), problem.makespan(assignment)
        self._problem, self._schedule, self._ran = problem, Schedule(problem), 0

    def move(self, group: tuple[int, ...], device: int) -> None:
        """Put tasks on a device where they can run, if the placement is faster then."""
        before = [self.devices[number] for number in group]
        if all(previous == device for previous in before):
            return
        self._run_until(group[0])
        for number in group:
            self.devices[number] = device
        is_open = self._run_until(len(self.devices), self.seconds)
        if is_open and max(self._schedule.clocks) < self.seconds:
            self.seconds = max(self._schedule.clocks)
        else:
            self._take_back_until(group[0])
            for number, previous in zip(group, before, strict=True):
                self.devices[number] = previous

    def _run_until(self, number: int, limit: float = inf) -> bool:
        """Run just the tasks before one; False as soon as it is clear that all will take too long."""
        self._take_back_until(number)
        tails = self._problem.tails
        while self._ran < number:
            end = self._schedule.run(self._ran, self.devices[self._ran])
            self._ran += 1
            if end + tails[self._ran - 1] >= limit:
                return False
        return True

    def _take_back_until(self, number: int) -> None:
        while self._ran > number:
            self._schedule.take_back()
            self._ran -= 1


def _chains(problem: DeviceProblem) -> list[tuple[int, ...]]:
    """The longest rows of tasks in which each is the only user of the one before, which is all it needs."""
    users = [0] * len(problem.tasks)
    for task in problem.tasks:
        for need in task.needs:
            users[need] += 1
    rows: dict[int, list[int]] = {}
    for number, task in enumerate(problem.tasks):
        is_next = len(task.needs) == 1 and users[task.needs[0]] == 1 and task.needs[0] in rows
        row = rows.pop(task.needs[0]) if is_next else []
        row.append(number)
        rows[number] = row
    return [tuple(row) for row in rows.values() if len(row) > 1]


class _BranchAndBound:
    """Excludes, or finds, placements that are faster than the best one known."""

    def __init__(self, problem: DeviceProblem, best: Assignment, nodes: int) -> None:
        self.best, self.seconds = best, problem.makespan(best)
        self.is_exact = True
        self.bound = self.seconds
        self._problem, self._left = problem, nodes
        self._schedule = Schedule(problem)
        self._alike = _alike(problem)
        rest = [min(task.seconds) for task in problem.tasks]
        self._work = [sum(rest[number:]) for number in range(len(rest) + 1)]

    def run(self) -> None:
        """Look at all partial placements that may lead to a faster one, with a stack of its own."""
        count = len(self._problem.tasks)
        placed: list[int] = []
        least: list[float] = [0.0]
        waiting = [self._devices(placed)]
        while waiting:
            device = next(waiting[-1], None)
            if device is None:
                waiting.pop()
                least.pop()
                if placed:
                    placed.pop()
                    self._schedule.take_back()
                continue
            if self._left <= 0:
                self.is_exact, self.bound = False, self._lowest(waiting, least)
                return
            self._left -= 1
            number = len(placed)
            end = self._schedule.run(number, device)
            bound = max(least[-1], end + self._problem.tails[number], self._shared(number + 1))
            if bound >= self.seconds:
                self._schedule.take_back()
                continue
            placed.append(device)
            if number + 1 == count:
                self.best, self.seconds = tuple(placed), max(self._schedule.clocks)
                self.bound = self.seconds
                placed.pop()
                self._schedule.take_back()
                continue
            least.append(bound)
            waiting.append(self._devices(placed))

    def _shared(self, number: int) -> float:
        """When all devices are done at the earliest if the remaining work could be divided at will."""
        return (sum(self._schedule.clocks) + self._work[number]) / self._problem.devices

    def _lowest(self, waiting: list[Iterator[int]], least: list[float]) -> float:
        """What any placement takes that has not been looked at."""
        others = (bound for rest, bound in zip(waiting, least, strict=True) if any(True for _ in rest))
        return min((least[-1], self.seconds, *others))

    def _devices(self, placed: list[int]) -> Iterator[int]:
        """Where the next task may run, one of several unused devices that are alike."""
        used = set(placed)
        seen: set[int] = set()
        for device in self._problem.open_devices[len(placed)]:
            if device not in used:
                if self._alike[device] in seen:
                    continue
                seen.add(self._alike[device])
            yield device


def _alike(problem: DeviceProblem) -> tuple[int, ...]:
    """For each device the first one that could change places with it."""

    def is_alike(first: int, second: int) -> bool:
        swap = {first: second, second: first}
        numbers = range(problem.devices)
        return all(task.seconds[first] == task.seconds[second] for task in problem.tasks) and all(
            problem.links[a][b] == problem.links[swap.get(a, a)][swap.get(b, b)]
            for a in numbers
            for b in numbers
        )

    return tuple(
        next(first for first in range(device + 1) if first == device or is_alike(first, device))
        for device in range(problem.devices)
    )
