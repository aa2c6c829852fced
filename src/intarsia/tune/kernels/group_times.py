"""The times of a program's kernels as it is, and what a decision on them can save at most."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from intarsia.native.roofline import Roofline
from intarsia.tune.kernels.kernel_group import KernelGroup
from intarsia.tune.kernels.kernel_question import KernelQuestion

LESS_WORK: Final = 0.5
"""Share of the time that another algorithm is expected to save at most: F(4, 3) in place of direct sums has a
quarter of the products, and transforms beside them."""


@dataclass(frozen=True)
class KernelTimes:
    """The times of a program's kernels as it is.

    Attributes:
        seconds: Seconds of the kernels of each group in one run, by key.
        groups: The groups, by key.
        roofline: Roofline of the machine, if it is known.
    """

    seconds: Mapping[str, float]
    groups: Mapping[str, KernelGroup]
    roofline: Roofline | None = None

    @property
    def whole(self) -> float:
        """Seconds of all kernels."""
        return sum(self.seconds.values())

    def most_saved(self, question: KernelQuestion) -> float:
        """Return the seconds that a question can save at most.

        No kernel is expected to beat the best rates, in operations and in bytes, of this program's kernels,
        or the roofline. With fewer operations, only the bytes limit it.
        """
        saved = sum(self.seconds[key] - self._least(key) for key in question.groups)
        if question.has_less_work:
            seconds = [(self.seconds[key], self._seconds_of_bytes(key)) for key in question.groups]
            # Far from the roofline another algorithm may gain what any other choice may.
            return max(saved, sum(min(LESS_WORK * took, max(0.0, took - least)) for took, least in seconds))
        return saved if question.most_saved is None else min(saved, question.most_saved)

    def _seconds_of_bytes(self, key: str) -> float:
        """Return the least seconds of a group's bytes: the roofline's, or at the rate of a faster kernel.

        A bandwidth that was measured while other programs ran is too low, like a peak. Kernels of fewer bytes
        do not show it: caches may serve them.
        """
        amount, bounds = (
            self.groups[key].bytes_moved,
            {other: self._roofline_seconds(other) for other in self.seconds},
        )
        shares = [
            self.seconds[other] / bound
            for other, bound in bounds.items()
            if bound and self.seconds[other] and self.groups[other].bytes_moved >= amount
        ]
        return bounds[key] * min(1.0, min(shares, default=1.0))

    def _roofline_seconds(self, key: str) -> float:
        group = self.groups[key]
        if self.roofline is None or not group.calls:
            return 0.0
        return group.calls * self.roofline.seconds_of_bytes(group.bytes_moved // group.calls)

    @cached_property
    def _peak(self) -> float:
        """Operations per second that no kernel exceeds: the roofline's, or those of a kernel that is faster.

        A peak that was measured while other programs ran is too low.
        """
        if self.roofline is None:
            return math.inf
        rates = [group.flop / self.seconds[key] for key, group in self.groups.items() if self.seconds[key]]
        return max(self.roofline.peak, *rates)

    def _least(self, key: str) -> float:
        if not self.seconds[key]:
            return 0.0
        group = self.groups[key]
        bounds = [self._seconds_of_bytes(key), group.flop / self._peak]
        bounds += [
            amount * self.seconds[other] / best
            for amount, (other, best) in (
                (group.flop, self._best("flop")),
                (group.bytes_moved, self._best("bytes_moved")),
            )
            if best
        ]
        return min(self.seconds[key], max(bounds, default=0.0))

    def _best(self, amount: str) -> tuple[str, int]:
        """Return the key and the amount of the group with the highest rate."""
        key = max(
            self.seconds, key=lambda key: getattr(self.groups[key], amount) / (self.seconds[key] or 1.0)
        )
        return key, getattr(self.groups[key], amount)
