"""What indices of a TopK or ArgMax select: judged by the scores, not by the order of equal ones.

Each of the outputs is a table, of which the indices select rows: the index itself, the score, a box, a label.
At each rank every row is right whose score is within noise of the score that the reference has there; no row
may be selected twice, and all outputs must have selected the same one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from intarsia.measure.judge.gate_report import (
    EQUAL,
    Array,
    GateReport,
    structural_complaint,
    structure_report,
)
from intarsia.measure.judge.output_check import CHECK_KINDS, Facts


@dataclass(frozen=True, slots=True, eq=False)
class PickCheck:
    """A check of all outputs that the indices of one operator select.

    Attributes:
        where: Positions of the outputs.
        names: Their names.
        expected: Their reference results.
        scores: What is selected by, as rows of elements, of which each selects on its own.
        delta: Noise of a score.
        count: Number of elements that each row selects.
        largest: Whether the largest are selected.
        tables: What an output has for each element of the scores: of shape (rows, elements, ...).
        allowed: Allowed difference of elements of each table.
    """

    kind: ClassVar[str] = "pick"

    where: tuple[int, ...]
    names: tuple[str, ...]
    expected: tuple[Array, ...]
    scores: Array
    delta: float
    count: int
    largest: bool
    tables: tuple[Array, ...]
    allowed: tuple[float, ...]

    @property
    def positions(self) -> tuple[int, ...]:
        """See OutputCheck.positions."""
        return self.where

    def check(self, outputs: Sequence[Array]) -> GateReport:
        """See OutputCheck.check."""
        actual = [np.asarray(outputs[position]) for position in self.where]
        for name, array, expected in zip(self.names, actual, self.expected, strict=True):
            if complaint := structural_complaint(array, expected):
                return structure_report(f'output "{name}" has {complaint}')
        is_single = self.count == 1 and len(actual) == 1 and self.allowed == (0.0,)
        complaint = self._single_complaint(actual[0]) if is_single else next(self._complaints(actual), "")
        off = max(map(_difference, actual, self.expected), default=0.0)
        if complaint:
            return GateReport(False, off, 1.0, None, complaint, np.inf)
        message = (
            f"what {self._listed()} select is right; equal scores are in another order" if off else EQUAL
        )
        return GateReport(True, 0.0, 0.0, None, message, 0.0)

    def _single_complaint(self, actual: Array) -> str:
        """What is wrong with indices of one element a row: as `_complaints`, for all rows at once."""
        indices = actual.reshape(-1, 1)
        if ((indices < 0) | (indices >= self.scores.shape[1])).any():
            return f"{self._listed()} has an index outside of 0 to {self.scores.shape[1] - 1}"
        picked = np.take_along_axis(self.scores, indices, 1)[:, 0]
        best = self.scores.max(axis=1) if self.largest else self.scores.min(axis=1)
        wrong = np.flatnonzero(np.abs(picked - best) > 2 * self.delta)
        if not wrong.size:
            return ""
        row = int(wrong[0])
        return (
            f"{self._listed()} selects {picked[row]:.6g} in row {row}, "
            f"expected {best[row]:.6g} within {2 * self.delta:.2g}"
        )

    def _complaints(self, actual: Sequence[Array]) -> Iterator[str]:
        for row, scores in enumerate(self.scores):
            order = np.argsort(scores, kind="stable")
            ascending, ordered = scores[order], scores[order[::-1] if self.largest else order]
            free = np.ones(scores.size, bool)
            found = [
                array.reshape(len(self.scores), self.count, *table.shape[2:])[row]
                for array, table in zip(actual, self.tables, strict=True)
            ]
            for rank in range(self.count):
                ends = ordered[rank] - 2 * self.delta, ordered[rank] + 2 * self.delta
                low, high = np.searchsorted(ascending, ends[0]), np.searchsorted(ascending, ends[1], "right")
                near = order[low:high]
                near = near[free[near]]
                fits = self._fitting(row, near, [array[rank] for array in found])
                if not fits.size:
                    yield (
                        f"{self._listed()} at rank {rank} of row {row} are of no element whose score is "
                        f"{ordered[rank]:.6g} within {2 * self.delta:.2g}, or of one selected before"
                    )
                    return
                free[fits[np.abs(scores[fits] - ordered[rank]).argmax()]] = False

    def _fitting(self, row: int, candidates: Array, found: Sequence[Array]) -> Array:
        """Those of some elements that have in all tables what was found."""
        for table, allowed, value in zip(self.tables, self.allowed, found, strict=True):
            rows = table[row][candidates].astype(np.float64)
            off = np.abs(rows - value.astype(np.float64)).reshape(len(candidates), value.size)
            candidates = candidates[(off <= allowed).all(axis=1)]
        return candidates

    def _listed(self) -> str:
        return " and ".join(f'"{name}"' for name in self.names)

    def around(self, outputs: Sequence[Array]) -> Self:
        """See OutputCheck.around: what is right follows from the scores, not from a result."""
        return replace(self, expected=tuple(outputs[position] for position in self.where))

    def loosened(self, bound: float) -> PickCheck:
        """See OutputCheck.loosened: scores may be off by the bound, and so may what is selected."""
        sizes = [bound * float(np.abs(table).max(initial=0)) for table in self.tables]
        allowed = [old if old == 0 else max(old, new) for old, new in zip(self.allowed, sizes, strict=True)]
        delta = max(self.delta, bound * float(np.abs(self.scores).max(initial=0)))
        return replace(self, delta=delta, allowed=tuple(allowed))

    def facts(self) -> Facts:
        """See OutputCheck.facts."""
        names = ("where", "names", "delta", "count", "largest", "allowed")
        return {name: getattr(self, name) for name in names}

    def arrays(self) -> Mapping[str, Array]:
        """See OutputCheck.arrays."""
        return {"scores": self.scores, **{f"table_{i}": table for i, table in enumerate(self.tables)}}

    @classmethod
    def restored(cls, facts: Facts, arrays: Mapping[str, Array], expected: Sequence[Array]) -> Self:
        """See OutputCheck.restored."""
        where = tuple(map(int, facts["where"]))
        return cls(
            where,
            tuple(facts["names"]),
            tuple(expected[position] for position in where),
            arrays["scores"],
            float(facts["delta"]),
            int(facts["count"]),
            bool(facts["largest"]),
            tuple(arrays[f"table_{number}"] for number in range(len(where))),
            tuple(map(float, facts["allowed"])),
        )


def _difference(found: Array, expected: Array) -> float:
    off = np.abs(found.astype(np.float64) - expected.astype(np.float64))
    return float(np.nan_to_num(off, nan=np.inf).max(initial=0.0))


CHECK_KINDS.register(PickCheck.kind, PickCheck)
