"""Several calls of a program of one kernel, with one return to Python after all of them.

A small program takes as long as the way to it: checks, and the hand-over of the interpreter lock at both ends
of a kernel, which other threads wait for. A pool that has calls waiting runs some of them as a series.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from intarsia.runtime.buffers import ShapeAndDType
from intarsia.runtime.kernel import AddressSeries, RepeatableKernel, Value
from intarsia.runtime.kernel_call import NamedKernel
from intarsia.runtime.plan import ExecutionPlan
from intarsia.runtime.scan_at_once import kernel_body
from intarsia.support.array_address import array_address


@dataclass(frozen=True, slots=True)
class SeriesKernel:
    """The only kernel of a program, which can run many times in one call.

    Attributes:
        named: The kernel.
        inputs: For each of its parameters the number of the program's input.
        results: For each result of the program the number of the kernel's result.
        forms: Shape and element type of each of the kernel's results.
    """

    named: NamedKernel
    inputs: tuple[int, ...]
    results: tuple[int, ...]
    forms: tuple[ShapeAndDType, ...]

    @classmethod
    def of(cls, plan: ExecutionPlan, kernels: Sequence[NamedKernel]) -> Self | None:
        """Return the only kernel of a plan; None if there is more to do, or it has to be called each time."""
        body = kernel_body(plan.blocks, "main")
        if body is None or len(set(body.results)) < len(body.results):
            return None
        named = kernels[body.kernel]
        kernel = named.kernel
        forms = kernel.repeated_results() if isinstance(kernel, RepeatableKernel) else None
        return None if forms is None else cls(named, body.inputs, body.results, tuple(forms))

    @property
    def is_usable(self) -> bool:
        """Whether no call is timed or recorded by itself."""
        return not self.named.is_watched

    def run(self, calls: Sequence[Sequence[Value]]) -> list[list[Value]]:
        """Run the calls one after the other, and return the results of each; they belong to the caller.

        Args:
            calls: Inputs of each call, C-contiguous, aligned arrays.

        Raises:
            ExecutionError: The kernel failed.
        """
        outputs = [[np.empty(*form) for _ in calls] for form in self.forms]
        read = [_series([call[number] for call in calls]) for number in self.inputs]
        self.named.repeat(len(calls), read, list(map(_series, outputs)))
        return [[outputs[number][at] for number in self.results] for at in range(len(calls))]


def _series(arrays: Sequence[Value]) -> AddressSeries:
    checked = [array for array in arrays if isinstance(array, np.ndarray)]
    return AddressSeries(checked[0], np.array(list(map(array_address, checked)), np.int64))
