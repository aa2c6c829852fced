"""Order the steps of several devices so that the devices work in parallel.

List scheduling (Graham 1966) with unit costs. What another device needs comes first, the longer that device
has work from there on the earlier (as the upward rank of Topcuoglu et al. 2002, counted from the first
crossing); all else keeps its order, in which intermediate values live for a short time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from heapq import heappop, heappush

from intarsia.runtime.plan import Copy, PlanBlock, RunKernel


def overlapping(block: PlanBlock) -> PlanBlock:
    """The block with its steps in another order, if it is straight-line and has several devices.

    Before: `%0 = a(%x) on 0; %1 = b(%0) on 0; %2 = c(%x) on 0; %3 = copy(%2) to 1; %4 = d(%3) on 1`
    After:  `%2 = c(%x) on 0; %3 = copy(%2) to 1; %0 = a(%x) on 0; %4 = d(%3) on 1; %1 = b(%0) on 0`
    """
    steps = [step for step in block.steps if isinstance(step, (RunKernel, Copy))]
    if len(set(block.slot_devices)) < 2 or len(steps) < len(block.steps):
        return block
    return replace(block, steps=tuple(steps[index] for index in _Order(steps).indices()))


class _Order:
    """Simulates the devices, each step taking one unit of time."""

    def __init__(self, steps: Sequence[RunKernel | Copy]) -> None:
        writer = {slot: index for index, step in enumerate(steps) for slot in step.outputs}
        self._steps = steps
        self._needs = [sorted({writer[slot] for slot in step.inputs if slot in writer}) for step in steps]
        self._users: list[list[int]] = [[] for _ in steps]
        for index, needed in enumerate(self._needs):
            for before in needed:
                self._users[before].append(index)
        self._ranks = self._crossing_ranks()

    def _crossing_ranks(self) -> list[int]:
        """Return, for each step, the longest path from the first device crossing after it; 0 without one."""
        whole = [0] * len(self._steps)
        crossing = [0] * len(self._steps)
        for index in range(len(self._steps) - 1, -1, -1):
            for user in self._users[index]:
                whole[index] = max(whole[index], whole[user])
                apart = self._steps[user].device != self._steps[index].device
                crossing[index] = max(crossing[index], whole[user] if apart else crossing[user])
            whole[index] += 1
        return crossing

    def indices(self) -> list[int]:
        """Return the steps in the order in which they begin."""
        missing = [len(needed) for needed in self._needs]
        arriving: list[tuple[int, int]] = []  # time at which all that a step needs is there, and the step
        ready: dict[int, list[tuple[int, int]]] = {}
        free: dict[int, int] = {}
        order: list[int] = []
        for index, count in enumerate(missing):
            if not count:
                heappush(arriving, (0, index))
        while len(order) < len(self._steps):
            moments = [free.get(device, 0) for device, waiting in ready.items() if waiting]
            time = min([*moments, *(moment for moment, _ in arriving[:1])])
            while arriving and arriving[0][0] <= time:
                index = heappop(arriving)[1]
                heappush(ready.setdefault(self._steps[index].device, []), (-self._ranks[index], index))
            for device in sorted(ready):
                if ready[device] and free.get(device, 0) <= time:
                    index = heappop(ready[device])[1]
                    order.append(index)
                    free[device] = time + 1
                    for user in self._users[index]:
                        missing[user] -= 1
                        if not missing[user]:
                            heappush(arriving, (time + 1, user))
        return order
