"""Detections of NonMaxSuppression: any choice that follows from scores and boxes within noise is right.

Outputs are the selected rows of batch, class and box, or what a program gathers for them: boxes, scores,
labels. Each gathered row is looked up in a table of all boxes that could be selected. The boxes found are
judged as if they were an output; where some row may be of one of several boxes, by their order only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Self

import numpy as np

from intarsia.measure.judge.gate_report import EQUAL, Array, GateReport, structure_report
from intarsia.measure.judge.output_check import CHECK_KINDS, Facts

_FACTS: Final = (
    *("where", "names", "axes", "index", "most", "threshold", "least", "cut"),
    *("is_centered", "delta", "noise"),
)
_ARRAYS: Final = ("selected", "boxes", "scores")


@dataclass(frozen=True, slots=True, eq=False)
class SuppressionCheck:
    """A check of all outputs that have a row for each selected box.

    Attributes:
        where: Positions of the outputs.
        names: Their names.
        expected: Their reference results.
        axes: The axis of each along which its rows lie.
        index: Number of the output with rows of batch, class and box among these outputs, or None.
        tables: Values of each output for all boxes, as rows; empty for the selected rows themselves.
        allowed: Allowed difference of the columns of each table.
        selected: Boxes that the reference selects, as positions in the flattened scores.
        boxes: Boxes, of shape (batches, boxes, 4).
        scores: Scores, of shape (batches, classes, boxes).
        most: Largest number of boxes of a class.
        threshold: Largest overlap of two boxes of a class.
        least: Score that a selected box exceeds; None without one.
        cut: Score of the last of the boxes that take part; None if all do.
        is_centered: Whether boxes have a centre and a size.
        delta: Noise of a score.
        noise: Noise of a corner.
    """

    kind: ClassVar[str] = "suppression"

    where: tuple[int, ...]
    names: tuple[str, ...]
    expected: tuple[Array, ...]
    axes: tuple[int, ...]
    index: int | None
    tables: tuple[Array, ...]
    allowed: tuple[Array, ...]
    selected: Array
    boxes: Array
    scores: Array
    most: int
    threshold: float
    least: float | None
    cut: float | None
    is_centered: bool
    delta: float
    noise: float

    @property
    def positions(self) -> tuple[int, ...]:
        """See OutputCheck.positions."""
        return self.where

    def check(self, outputs: Sequence[Array]) -> GateReport:
        """See OutputCheck.check."""
        actual = [np.asarray(outputs[position]) for position in self.where]
        if complaint := next(self._structure_complaints(actual), ""):
            return structure_report(complaint)
        rows = [selected_rows(array, axis) for array, axis in zip(actual, self.axes, strict=True)]
        if complaint := next(self._complaints(rows), ""):
            return GateReport(False, 1.0, 1.0, None, complaint, np.inf)
        if all(np.array_equal(*pair) for pair in zip(actual, self.expected, strict=True)):
            return GateReport(True, 0.0, 0.0, None, EQUAL, 0.0)
        message = f"detections of {self._listed()} are right; some lie within noise of a limit"
        return GateReport(True, 0.0, 0.0, None, message, 0.0)

    def _structure_complaints(self, actual: Sequence[Array]) -> Iterator[str]:
        """What is wrong with types and shapes, apart from the number of selected boxes."""
        for name, array, expected, axis in zip(self.names, actual, self.expected, self.axes, strict=True):
            if array.dtype != expected.dtype:
                yield f'output "{name}" has element type {array.dtype.name}, expected {expected.dtype.name}'
            kept = [size for number, size in enumerate(expected.shape) if number != axis]
            if array.ndim != expected.ndim or np.delete(array.shape, axis).tolist() != kept:
                wanted = f"{expected.shape} but for axis {axis}"
                yield f'output "{name}" has shape {array.shape}, expected {wanted}'
        counts = {array.shape[axis] for array, axis in zip(actual, self.axes, strict=True)}
        if len(counts) > 1:
            yield f"{self._listed()} are of different numbers of boxes: {sorted(counts)}"

    def _complaints(self, rows: Sequence[Array]) -> Iterator[str]:
        if self.index is not None:
            selected = rows[self.index]
            sizes = np.array(self.scores.shape)
            if (selected < 0).any() or (selected >= sizes).any():
                yield f'output "{self.names[self.index]}" has an index outside of {tuple(map(int, sizes))}'
                return
            flat = np.ravel_multi_index(tuple(selected.T), self.scores.shape)
            for name, fits in zip(self.names, self._fitting(rows, flat), strict=True):
                if not fits.all():
                    yield f'row {int(fits.argmin())} of output "{name}" is not of the selected box'
            yield from self._selection_complaints(selected)
            return
        lookup = self._look_up(rows)
        if (lookup < 0).any():
            yield f"row {int(lookup.argmin())} of {self._listed()} is of no box, or of one that was before"
            return
        complaints = self._selection_complaints(np.stack(np.unravel_index(lookup, self.scores.shape), axis=1))
        if complaint := next(complaints, ""):
            yield from self._doubted(complaint, [self._boxes_of(row) for row in zip(*rows, strict=True)])

    def _doubted(self, complaint: str, boxes: Sequence[Array]) -> Iterator[str]:
        """A complaint about the boxes that were found, if no others that the rows may be of are right."""
        if all(map(self._is_alike, boxes)):
            yield complaint
            return
        row = self._unordered_row(boxes)
        if row is not None:
            yield f"row {row} of {self._listed()} is not in the order of batch, class and score"

    def _unordered_row(self, boxes: Sequence[Array]) -> int | None:
        """The first row that is out of order whichever boxes the rows are of; None if there is none."""
        scores, size = self.scores.reshape(-1), self.scores.shape[-1]
        # By batch and class that the row before may be of: the largest score that it may have there.
        before = {-1: np.inf}
        for row, candidates in enumerate(boxes):
            current: dict[int, float] = {}
            for group, score in zip((candidates // size).tolist(), scores[candidates].tolist(), strict=True):
                if group > min(before) or score <= before.get(group, -np.inf) + 2 * self.delta:
                    current[group] = max(current.get(group, -np.inf), score)
            if not current:
                return row
            before = current
        return None

    def _fitting(self, rows: Sequence[Array], boxes: Array) -> Iterator[Array]:
        """Of each output, which rows are those of some boxes."""
        for array, table, allowed in zip(rows, self.tables, self.allowed, strict=True):
            yield _is_near(array, table[boxes], allowed) if len(table) else np.ones(len(array), np.bool_)

    def _look_up(self, rows: Sequence[Array]) -> Array:
        """The box of each row, as a position in the flattened scores; -1 from the first row that has none."""
        lookup = np.full(len(rows[0]), -1)
        shared = min(len(lookup), len(self.selected))
        fitting = list(self._fitting([array[:shared] for array in rows], self.selected[:shared]))
        fits = np.logical_and.reduce(fitting)
        lookup[:shared][fits] = self.selected[:shared][fits]
        is_free = np.ones(self.scores.size, np.bool_)
        is_free[lookup[lookup >= 0]] = False
        for row in np.flatnonzero(lookup < 0):
            boxes = self._boxes_of([array[row] for array in rows])
            boxes = boxes[is_free[boxes]]
            if not boxes.size:
                lookup[row:] = -1
                break
            # Rows are in the order of batch and class, and of scores within a class.
            size = self.scores.shape[-1]
            behind = boxes[boxes // size >= (lookup[row - 1] // size if row else 0)]
            boxes = behind if behind.size else boxes
            boxes = boxes[boxes // size == boxes[0] // size]
            lookup[row] = boxes[self.scores.reshape(-1)[boxes].argmax()]
            is_free[lookup[row]] = False
        return lookup

    def _boxes_of(self, row: Sequence[Array]) -> Array:
        """All boxes that a row may be of, in order."""
        boxes = np.flatnonzero(self.scores.reshape(-1) >= self._least - self.delta)
        for values, table, allowed in zip(row, self.tables, self.allowed, strict=True):
            boxes = boxes[_is_near(values[None], table[boxes], allowed)]
        return boxes

    def _is_alike(self, boxes: Array) -> bool:
        """Whether it is all the same which of some boxes is meant: one class, one place and one score."""
        if boxes.size < 2:
            return True
        batch, label, box = np.unravel_index(boxes, self.scores.shape)
        places, scores = self.boxes[batch, box], self.scores.reshape(-1)[boxes]
        is_one_class = (batch == batch[0]).all() and (label == label[0]).all()
        is_near = np.ptp(places, axis=0).max() <= self.noise and np.ptp(scores) <= 2 * self.delta
        return bool(is_one_class and is_near)

    def _selection_complaints(self, selected: Array) -> Iterator[str]:
        """What is wrong with rows of batch, class and box."""
        labels = self.scores.shape[1]
        groups = selected[:, 0] * labels + selected[:, 1]
        if (np.diff(groups) < 0).any():
            yield f"{self._listed()} is not ordered by batch and class"
        for batch in range(self.scores.shape[0]):
            box_corners = _corners(self.boxes[batch], is_centered=self.is_centered)
            for label in range(labels):
                chosen = selected[groups == batch * labels + label, 2]
                where = f"of class {label} in batch {batch}"
                for complaint in self._class_complaints(self.scores[batch, label], box_corners, chosen):
                    yield f"{self._listed()} {complaint} {where}"

    def _class_complaints(self, scores: Array, boxes: Array, chosen: Array) -> Iterator[str]:
        """What is wrong with the boxes of one class, in the order in which they were selected."""
        values = scores.astype(np.float64)
        yield from self._score_complaints(values, chosen)
        near = 2 * self.delta
        reasons = (values <= self._least + self.delta) | (values <= self._cut + near)
        reasons[chosen] = True
        for rank, box in enumerate(chosen):
            ratio, off = _overlaps(boxes[box], boxes, self.noise)
            later = chosen[rank + 1 :]
            if (ratio[later] > self.threshold + off[later]).any():
                yield f"has a box that overlaps box {int(box)}"
            reasons |= (ratio > self.threshold - off) & (values <= values[box] + near)
        if len(chosen) >= self.most:
            reasons |= values <= (values[chosen[-1]] if len(chosen) else np.inf) + near
        lost = np.flatnonzero(~reasons)
        if lost.size:
            yield f"lacks box {int(lost[0])} with the score {values[lost[0]]:.6g}, which no other overlaps,"

    def _score_complaints(self, values: Array, chosen: Array) -> Iterator[str]:
        """What is wrong with the number of selected boxes of one class, and with their scores."""
        near = 2 * self.delta
        if len(set(chosen.tolist())) < len(chosen):
            yield "selects a box twice"
        if len(chosen) > self.most:
            yield f"has {len(chosen)} boxes, expected {self.most} at most,"
        if (values[chosen] <= self._least - self.delta).any():
            yield "has a box below the least score"
        if (values[chosen] < self._cut - near).any():
            yield "has a box below those that take part"
        if (np.diff(values[chosen]) > near).any():
            yield "is not ordered by score"

    @property
    def _least(self) -> float:
        return -np.inf if self.least is None else self.least

    @property
    def _cut(self) -> float:
        return -np.inf if self.cut is None else self.cut

    def _listed(self) -> str:
        return " and ".join(f'output "{name}"' for name in self.names)

    def around(self, outputs: Sequence[Array]) -> Self:
        """See OutputCheck.around: what is right follows from scores and boxes, not from a result."""
        return replace(self, expected=tuple(outputs[position] for position in self.where))

    def loosened(self, bound: float) -> SuppressionCheck:
        """See OutputCheck.loosened: scores, boxes and what is gathered may be off by the bound."""
        delta = max(self.delta, bound * float(np.abs(self.scores).max(initial=0))) if self.delta else 0.0
        noise = max(self.noise, bound * float(np.abs(self.boxes).max(initial=0))) if self.noise else 0.0
        sizes = [bound * np.abs(table).max(axis=0, initial=0) for table in self.tables]
        allowed = [
            np.where(old, np.maximum(old, new), 0) for old, new in zip(self.allowed, sizes, strict=True)
        ]
        return replace(self, delta=delta, noise=noise, allowed=tuple(allowed))

    def facts(self) -> Facts:
        """See OutputCheck.facts."""
        return {name: getattr(self, name) for name in _FACTS}

    def arrays(self) -> Mapping[str, Array]:
        """See OutputCheck.arrays."""
        tables = {f"table_{number}": table for number, table in enumerate(self.tables)}
        allowed = {f"allowed_{number}": limits for number, limits in enumerate(self.allowed)}
        return {**{name: getattr(self, name) for name in _ARRAYS}, **tables, **allowed}

    @classmethod
    def restored(cls, facts: Facts, arrays: Mapping[str, Array], expected: Sequence[Array]) -> Self:
        """See OutputCheck.restored."""
        where = tuple(map(int, facts["where"]))
        fields = {name: facts[name] for name in _FACTS} | {name: arrays[name] for name in _ARRAYS}
        fields |= {"where": where, "names": tuple(facts["names"]), "axes": tuple(map(int, facts["axes"]))}
        numbers = range(len(where))
        return cls(
            expected=tuple(expected[position] for position in where),
            tables=tuple(arrays[f"table_{number}"] for number in numbers),
            allowed=tuple(arrays[f"allowed_{number}"] for number in numbers),
            **fields,
        )


def selected_rows(array: Array, axis: int) -> Array:
    """An output with its rows along an axis, as rows of numbers."""
    count = array.shape[axis]
    return np.moveaxis(array, axis, 0).reshape(count, int(np.prod(np.delete(array.shape, axis))))


def _is_near(rows: Array, wanted: Array, allowed: Array) -> Array:
    """Which rows are within allowed differences of others."""
    off = np.abs(rows.astype(np.float64) - wanted.astype(np.float64))
    return np.asarray((off <= allowed).all(axis=1))


CHECK_KINDS.register(SuppressionCheck.kind, SuppressionCheck)


def _corners(boxes: Array, *, is_centered: bool) -> Array:
    """Return the lower and the upper corner of boxes, as rows of four numbers.

    Args:
        boxes: Rows of two opposite corners, or of a centre and a size.
        is_centered: Whether they have a centre and a size (`center_point_box=1`).
    """
    numbers = boxes.astype(np.float64)
    if is_centered:
        centre, half = numbers[:, :2], numbers[:, 2:] / 2
        return np.concatenate([centre - half, centre + half], axis=1)
    low, high = np.minimum(numbers[:, :2], numbers[:, 2:]), np.maximum(numbers[:, :2], numbers[:, 2:])
    return np.concatenate([low, high], axis=1)


def _overlaps(first: Array, others: Array, noise: float) -> tuple[Array, Array]:
    """Return the intersection over the union of a box with others, and how far an engine may be off in it.

    Args:
        first: Corners of a box.
        others: Corners of boxes, as rows.
        noise: Allowed error of a corner.
    """
    low, high = np.maximum(first[:2], others[:, :2]), np.minimum(first[2:], others[:, 2:])
    shared = np.prod(np.maximum(high - low, 0), axis=1)
    sides = np.concatenate(
        [np.broadcast_to(first[2:] - first[:2], (len(others), 2)), others[:, 2:] - others[:, :2]], 1
    )
    union = sides[:, :2].prod(axis=1) + sides[:, 2:].prod(axis=1) - shared
    shortest = np.maximum(sides.min(axis=1), np.finfo(np.float64).tiny)
    ratio = np.where(union > 0, shared / np.where(union > 0, union, 1), 0.0)
    # A corner that is off by e changes an area by at most 4 e / (its shorter side) of it, of both areas.
    return ratio, np.minimum(8 * noise / shortest, 1.0) + 8 * 2.0**-23
