"""What is placed on devices, and how long a placement takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import TypeAlias

from intarsia.support.errors import UsageError

Assignment: TypeAlias = tuple[int, ...]
"""The number of a device for each task."""


@dataclass(frozen=True, slots=True)
class DeviceTask:
    """Something that runs on one device.

    Attributes:
        seconds: Time on each device; infinite where it cannot run or must not.
        needs: Numbers of the tasks whose values it reads, each once.
        nbytes: Size of what it computes.
    """

    seconds: tuple[float, ...]
    needs: tuple[int, ...] = ()
    nbytes: int = 0


@dataclass(frozen=True, slots=True)
class Link:
    """What copies from one device to another cost.

    Attributes:
        seconds: Fixed time of any copy.
        seconds_per_byte: Additional time per byte.
    """

    seconds: float = 0.0
    seconds_per_byte: float = 0.0

    def cost(self, nbytes: int) -> float:
        """Seconds of a copy of that size."""
        return self.seconds + self.seconds_per_byte * nbytes


@dataclass(frozen=True)
class DeviceProblem:
    """Tasks, devices, and what it costs to carry values between them.

    The model is that of the runtime: each device runs its tasks in the order of the program, one at a time;
    a copy is made once for each value and device, by the device that needs it, before the first task there
    that does. What counts is when the last one is done.

    Attributes:
        tasks: Each behind those that it needs.
        links: Cost of a copy from one device (row) to another (column).

    Raises:
        UsageError: A task has another number of devices, needs one behind it, or can run nowhere.
    """

    tasks: tuple[DeviceTask, ...]
    links: tuple[tuple[Link, ...], ...]

    def __post_init__(self) -> None:
        for number, task in enumerate(self.tasks):
            if len(task.seconds) != self.devices:
                raise UsageError(
                    f"task {number} has costs for {len(task.seconds)} devices, expected {self.devices}"
                )
            if any(not 0 <= need < number for need in task.needs):
                raise UsageError(f"task {number} needs one that is not before it")
            if min(task.seconds) == inf:
                raise UsageError(f"task {number} can run on none of the {self.devices} devices")

    @property
    def devices(self) -> int:
        """How many there are."""
        return len(self.links)

    @cached_property
    def open_devices(self) -> tuple[tuple[int, ...], ...]:
        """For each task the devices that it can run on."""
        return tuple(
            tuple(device for device, seconds in enumerate(task.seconds) if seconds < inf)
            for task in self.tasks
        )

    @cached_property
    def tails(self) -> tuple[float, ...]:
        """For each task the seconds that pass behind it at least: the longest way through its users."""
        tails = [0.0] * len(self.tasks)
        for number in reversed(range(len(self.tasks))):
            task = self.tasks[number]
            behind = tails[number] + min(task.seconds)
            for need in task.needs:
                tails[need] = max(tails[need], behind)
        return tuple(tails)

    def makespan(self, assignment: Sequence[int]) -> float:
        """Seconds until the last task is done; infinite if one cannot run where it is placed. Linear."""
        schedule = Schedule(self)
        for number, device in enumerate(assignment):
            if self.tasks[number].seconds[device] == inf:
                return inf
            schedule.run(number, device)
        return max(schedule.clocks, default=0.0)

    def copies(self, assignment: Sequence[int]) -> int:
        """How many copies a placement needs."""
        return len(
            {
                (need, assignment[number])
                for number, task in enumerate(self.tasks)
                for need in task.needs
                if assignment[need] != assignment[number]
            }
        )


class Schedule:
    """Tasks as they are run one after the other, each on a device; the last one can be taken back.

    Attributes:
        clocks: Until when each device is busy.
    """

    def __init__(self, problem: DeviceProblem) -> None:
        self.clocks = [0.0] * problem.devices
        self._problem = problem
        self._ends: list[float] = []
        self._devices: list[int] = []
        self._there: dict[tuple[int, int], float] = {}
        self._undo: list[tuple[float, list[tuple[int, int]]]] = []

    def run(self, number: int, device: int) -> float:
        """Run the next task; when it ends."""
        task, links = self._problem.tasks[number], self._problem.links
        clock = self.clocks[device]
        copies: list[tuple[int, int]] = []
        self._undo.append((clock, copies))
        begin = 0.0
        for need in task.needs:
            source = self._devices[need]
            if source == device:
                begin = max(begin, self._ends[need])
                continue
            arrival = self._there.get((need, device))
            if arrival is None:
                cost = links[source][device].cost(self._problem.tasks[need].nbytes)
                arrival = clock = max(clock, self._ends[need]) + cost
                self._there[need, device] = arrival
                copies.append((need, device))
            begin = max(begin, arrival)
        end = max(clock, begin) + task.seconds[device]
        self.clocks[device] = end
        self._ends.append(end)
        self._devices.append(device)
        return end

    def take_back(self) -> None:
        """As if the last task had not been run."""
        clock, copies = self._undo.pop()
        self.clocks[self._devices.pop()] = clock
        self._ends.pop()
        for key in copies:
            del self._there[key]
