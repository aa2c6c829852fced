"""Detections of NonMaxSuppression: any choice that follows from scores and boxes within noise is right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Self

import numpy as np

from intarsia.measure.judge.gate_report import EQUAL, Array, GateReport, structure_report
from intarsia.measure.judge.output_check import CHECK_KINDS, Facts
from intarsia.measure.judge.steps.overlap import corners, overlaps

_FACTS: Final = ("position", "name", "most", "threshold", "least", "is_centered", "delta", "noise")


@dataclass(frozen=True, slots=True, eq=False)
class SuppressionCheck:
    """A check of selected boxes, as rows of batch, class and box.

    Attributes:
        position: Number of the output.
        name: Name of the output.
        expected: Reference result.
        boxes: Boxes, of shape (batches, boxes, 4).
        scores: Scores, of shape (batches, classes, boxes).
        most: Largest number of boxes of a class.
        threshold: Largest overlap of two boxes of a class.
        least: Score that a selected box exceeds; None without one.
        is_centered: Whether boxes have a centre and a size.
        delta: Noise of a score.
        noise: Noise of a corner.
    """

    kind: ClassVar[str] = "suppression"

    position: int
    name: str
    expected: Array
    boxes: Array
    scores: Array
    most: int
    threshold: float
    least: float | None
    is_centered: bool
    delta: float
    noise: float

    @property
    def positions(self) -> tuple[int, ...]:
        """See OutputCheck.positions."""
        return (self.position,)

    def check(self, outputs: Sequence[Array]) -> GateReport:
        """See OutputCheck.check."""
        actual = np.asarray(outputs[self.position])
        if actual.dtype != self.expected.dtype or actual.ndim != 2 or actual.shape[1] != 3:
            text = f"shape {actual.shape} and type {actual.dtype.name}"
            return structure_report(
                f'output "{self.name}" has {text}, expected rows of 3 {self.expected.dtype.name}'
            )
        complaint = next(self._complaints(actual), "")
        if complaint:
            return GateReport(False, 1.0, 1.0, None, f'output "{self.name}" {complaint}', np.inf)
        if np.array_equal(actual, self.expected):
            return GateReport(True, 0.0, 0.0, None, EQUAL, 0.0)
        message = f'detections of output "{self.name}" are right; some lie within noise of a limit'
        return GateReport(True, 0.0, 0.0, None, message, 0.0)

    def _complaints(self, actual: Array) -> Iterator[str]:
        sizes = np.array([*self.scores.shape[:2], self.scores.shape[2]])
        if (actual < 0).any() or (actual >= sizes).any():
            yield f"has an index outside of {tuple(map(int, sizes))}"
            return
        groups = actual[:, 0] * sizes[1] + actual[:, 1]
        if (np.diff(groups) < 0).any():
            yield "is not ordered by batch and class"
        for batch in range(sizes[0]):
            box_corners = corners(self.boxes[batch], is_centered=self.is_centered)
            for label in range(sizes[1]):
                chosen = actual[groups == batch * sizes[1] + label, 2]
                where = f"of class {label} in batch {batch}"
                for complaint in self._class_complaints(self.scores[batch, label], box_corners, chosen):
                    yield f"{complaint} {where}"

    def _class_complaints(self, scores: Array, boxes: Array, chosen: Array) -> Iterator[str]:
        """What is wrong with the boxes of one class, in the order in which they were selected."""
        values = scores.astype(np.float64)
        near = 2 * self.delta
        if len(set(chosen.tolist())) < len(chosen):
            yield "selects a box twice"
        if len(chosen) > self.most:
            yield f"has {len(chosen)} boxes, expected {self.most} at most,"
        least = -np.inf if self.least is None else self.least
        if (values[chosen] <= least - self.delta).any():
            yield "has a box below the least score"
        if (np.diff(values[chosen]) > near).any():
            yield "is not ordered by score"
        reasons = values <= least + self.delta
        reasons[chosen] = True
        for rank, box in enumerate(chosen):
            ratio, off = overlaps(boxes[box], boxes, self.noise)
            later = chosen[rank + 1 :]
            if (ratio[later] > self.threshold + off[later]).any():
                yield f"has a box that overlaps box {int(box)}"
            reasons |= (ratio > self.threshold - off) & (values <= values[box] + near)
        if len(chosen) >= self.most:
            reasons |= values <= (values[chosen[-1]] if len(chosen) else np.inf) + near
        lost = np.flatnonzero(~reasons)
        if lost.size:
            yield f"lacks box {int(lost[0])} with the score {values[lost[0]]:.6g}, which no other overlaps,"

    def around(self, outputs: Sequence[Array]) -> Self:
        """See OutputCheck.around: what is right follows from scores and boxes, not from a result."""
        return replace(self, expected=outputs[self.position])

    def loosened(self, bound: float) -> SuppressionCheck:
        """See OutputCheck.loosened: scores and boxes may be off by the bound."""
        delta = max(self.delta, bound * float(np.abs(self.scores).max(initial=0))) if self.delta else 0.0
        noise = max(self.noise, bound * float(np.abs(self.boxes).max(initial=0))) if self.noise else 0.0
        return replace(self, delta=delta, noise=noise)

    def facts(self) -> Facts:
        """See OutputCheck.facts."""
        return {name: getattr(self, name) for name in _FACTS}

    def arrays(self) -> Mapping[str, Array]:
        """See OutputCheck.arrays."""
        return {"boxes": self.boxes, "scores": self.scores}

    @classmethod
    def restored(cls, facts: Facts, arrays: Mapping[str, Array], expected: Sequence[Array]) -> Self:
        """See OutputCheck.restored."""
        fields = {name: facts[name] for name in _FACTS}
        boxes, scores = arrays["boxes"], arrays["scores"]
        return cls(expected=expected[int(facts["position"])], boxes=boxes, scores=scores, **fields)


CHECK_KINDS.register(SuppressionCheck.kind, SuppressionCheck)
