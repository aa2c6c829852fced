"""The state of one Loop or Scan during its run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from intarsia.runtime.kernel import Array, Value
from intarsia.runtime.plan import Repeat
from intarsia.support.errors import ExecutionError


class Repetition:
    """The iterations of one Repeat step.

    Args:
        step: The step.
        values: Slots of the activation that contains the step; the results are written there.
        release: Slots of `values` that are dead after the step.

    Attributes:
        step: The step.
        returned: Results of the latest iteration, written by the body.

    Raises:
        ExecutionError: The trip count or the condition is no single element, or scanned values differ in
            their lengths.
    """

    __slots__ = (
        "_captured",
        "_condition",
        "_count",
        "_release",
        "_rows",
        "_scanned",
        "_states",
        "_trips",
        "_values",
        "returned",
        "step",
    )

    def __init__(self, step: Repeat, values: list[Value], release: tuple[int, ...]) -> None:
        self.step, self._values, self._release = step, values, release
        self._states: list[Value] = [values[slot] for slot in step.states]
        self._captured: list[Value] = [values[slot] for slot in step.captured]
        self._scanned = [
            _front(values[slot], axis, backward)
            for slot, (axis, backward) in zip(step.scanned, step.scan_axes, strict=True)
        ]
        self._rows: list[list[Array]] = [[] for _ in step.row_axes]
        self._count = 0
        self._trips = _trips(step, values, self._scanned)
        self._condition = not step.condition or bool(
            single_element(values[step.condition[0]], "condition of a Loop")
        )
        self.returned: list[Value] = [None] * step.body_results

    def next_arguments(self) -> list[Value] | None:
        """Read the results of the last iteration, and return the arguments of the next one.

        Returns:
            The arguments of the body; None if there is no further iteration.
        """
        if self._count:
            self._read_results()
        if not self._condition or (self._trips is not None and self._count >= self._trips):
            return None
        number, self._count = self._count, self._count + 1
        # Not ascontiguousarray: it turns a scalar, such as a slice of a vector, into a vector of one element.
        slices = [np.asarray(scanned[number], order="C") for scanned in self._scanned]
        if not self.step.is_loop:
            return [*self._states, *slices, *self._captured]
        return [np.array(number, np.int64), np.array(True), *self._states, *self._captured]

    def finish(self) -> None:
        """Write the last states and the stacked rows into the slots of the step."""
        stacks = [
            _stacked(rows, axis, backward) if rows else self._values[empty]
            for rows, (axis, backward), empty in zip(
                self._rows, self.step.row_axes, self.step.empty, strict=True
            )
        ]
        for slot, value in zip(self.step.outputs, [*self._states, *stacks], strict=True):
            self._values[slot] = value
        for slot in self._release:
            self._values[slot] = None

    def _read_results(self) -> None:
        results = self.returned
        if self.step.is_loop:
            self._condition = bool(single_element(results[0], "condition of a Loop"))
            results = results[1:]
        count = len(self._states)
        self._states = results[:count]
        for rows, row in zip(self._rows, results[count:], strict=True):
            if not isinstance(row, np.ndarray):
                raise ExecutionError("a row that a loop stacks is a sequence, expected a tensor")
            rows.append(row)


def single_element(value: Value, what: str) -> Array:
    """Return the only element of an array, as an array without axes.

    Raises:
        ExecutionError: It is no array, or has another number of elements.
    """
    if not isinstance(value, np.ndarray) or value.size != 1:
        actual = f"shape {value.shape}" if isinstance(value, np.ndarray) else "no array"
        raise ExecutionError(f"the {what} has {actual}, expected one element")
    return value.reshape(())


def _trips(step: Repeat, values: Sequence[Value], scanned: Sequence[Array]) -> int | None:
    if step.is_loop:
        return int(single_element(values[step.trips[0]], "trip count of a Loop")) if step.trips else None
    lengths = sorted({len(value) for value in scanned})
    if len(lengths) > 1:
        raise ExecutionError(f"a Scan goes through values of {lengths[0]} and {lengths[-1]} slices")
    return lengths[0]


def _front(value: Value, axis: int, backward: bool) -> Array:
    """Return a view of a scanned value in which the slices follow one another along the first axis."""
    if not isinstance(value, np.ndarray) or value.ndim <= axis:
        actual = f"shape {value.shape}" if isinstance(value, np.ndarray) else "no array"
        raise ExecutionError(f"a value that a Scan goes through along axis {axis} has {actual}")
    moved = np.moveaxis(value, axis, 0)
    return moved[::-1] if backward else moved


def _stacked(rows: Sequence[Array], axis: int, backward: bool) -> Array:
    if any(row.shape != rows[0].shape for row in rows):
        shapes = sorted({str(row.shape) for row in rows})
        raise ExecutionError(f"the rows that a loop stacks have the shapes {' and '.join(shapes[:2])}")
    return np.stack(rows[::-1] if backward else rows, axis)
