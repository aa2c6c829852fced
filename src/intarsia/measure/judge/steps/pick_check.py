"""Check the elements that a TopK or ArgMax selects by their scores, not by the order of equal ones.

The indices select rows of a table for each output: the index itself, the score, a box, a label. At each rank,
every row with a score within noise of the reference's score is right; no row may be selected twice, and all
outputs must have selected the same one. Where the operator promises no order
(TopK with sorted=0) the ranks of a row are compared as a set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Self

import numpy as np

from intarsia.measure.judge.gate_report import (
    EQUAL,
    Array,
    GateReport,
    structural_complaint,
    structure_report,
)
from intarsia.measure.judge.output_check import CHECK_KINDS, Facts

_FACTS: Final = (
    *("where", "names", "delta", "count", "largest", "allowed"),
    *("inner", "is_sorted", "index"),
)


@dataclass(frozen=True, slots=True, eq=False)
class PickCheck:
    """A check of all outputs that the indices of one operator select.

    Attributes:
        where: Positions of the outputs.
        names: Their names.
        expected: Their reference results.
        scores: Scores as rows of elements; each row is a selection of its own.
        delta: Noise of a score.
        count: Number of elements that each row selects.
        largest: Whether the largest are selected.
        tables: Values of each output for each element of the scores, of shape (rows, elements, ...).
        allowed: Allowed difference of elements of each table.
        inner: Product of the sizes of the axes behind the selected one, in scores and outputs: rows are
            numbered by the axes before it and those behind it.
        is_sorted: Whether the order of the ranks counts.
        index: Number of the output with indices among these outputs; None if all hold gathered values.
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
    inner: int = 1
    is_sorted: bool = True
    index: int | None = None

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
        picked_values = list(map(self._by_rows, actual, self.tables))
        complaints = (
            self._gathered_complaints(picked_values)
            if self.index is None
            else self._index_complaints(picked_values)
        )
        complaint = next(complaints, "")
        off = max(map(_difference, actual, self.expected), default=0.0)
        if complaint:
            return GateReport(False, off, 1.0, None, complaint, np.inf)
        message = (
            f"what {self._listed()} select is right; equal scores are in another order" if off else EQUAL
        )
        return GateReport(True, 0.0, 0.0, None, message, 0.0)

    def _by_rows(self, array: Array, table: Array) -> Array:
        """What an output has at each rank of each row, of shape (rows, ranks, ...)."""
        rows, tail = len(self.scores), table.shape[2:]
        split = array.reshape(rows // self.inner, self.count, self.inner, *tail)
        return np.moveaxis(split, 1, 2).reshape(rows, self.count, *tail)

    @property
    def _signed(self) -> Array:
        """The scores with a sign with which the largest are selected."""
        return self.scores if self.largest else -self.scores

    def _index_complaints(self, picked_values: Sequence[Array]) -> Iterator[str]:
        """What is wrong where it is known which elements are selected: all rows at once."""
        assert self.index is not None
        indices, scores = picked_values[self.index], self._signed
        if ((indices < 0) | (indices >= scores.shape[1])).any():
            yield f"{self._listed()} has an index outside of 0 to {scores.shape[1] - 1}"
            return
        repeated = np.flatnonzero((np.diff(np.sort(indices, axis=1), axis=1) == 0).any(axis=1))
        if repeated.size:
            yield f"{self._listed()} selects an element twice in row {int(repeated[0])}"
        picked = np.take_along_axis(scores, indices, 1)
        best = -np.sort(-scores, axis=1)[:, : self.count]
        yield from (
            self._order_complaints(picked, best) if self.is_sorted else self._set_complaints(picked, best)
        )
        for name, table, allowed, values in zip(
            self.names, self.tables, self.allowed, picked_values, strict=True
        ):
            places = indices.reshape(*indices.shape, *[1] * (table.ndim - 2))
            off = np.abs(np.take_along_axis(table, places, 1).astype(np.float64) - values.astype(np.float64))
            wrong = np.argwhere(~(off <= allowed))
            if wrong.size:
                row, rank = map(int, wrong[0, :2])
                yield f'output "{name}" at rank {rank} of row {row} is of another element than the index'

    def _order_complaints(self, picked: Array, best: Array) -> Iterator[str]:
        wrong = np.argwhere(np.abs(picked - best) > 2 * self.delta)
        if wrong.size:
            row, rank = map(int, wrong[0])
            score, wanted = ((1 if self.largest else -1) * array[row, rank] for array in (picked, best))
            yield (
                f"{self._listed()} selects {score:.6g} at rank {rank} of row {row}, "
                f"expected {wanted:.6g} within {2 * self.delta:.2g}"
            )

    def _set_complaints(self, picked: Array, best: Array) -> Iterator[str]:
        """What is wrong with the selected scores in any order: one is too low, or a higher one is missing."""
        cut, scores, reach = best[:, -1:], self._signed, 2 * self.delta
        low = np.flatnonzero((picked < cut - reach).any(axis=1))
        if low.size:
            yield f"{self._listed()} selects an element below the best {self.count} in row {int(low[0])}"
        certain = (scores > cut + reach).sum(axis=1)
        lost = np.flatnonzero((picked > cut + reach).sum(axis=1) < certain)
        if lost.size:
            yield f"{self._listed()} lacks one of the best {self.count} in row {int(lost[0])}"

    def _gathered_complaints(self, picked_values: Sequence[Array]) -> Iterator[str]:
        """What is wrong where only values at the selected elements are known."""
        complaint_of = self._rank_complaint if self.is_sorted else self._row_complaint
        for row, scores in enumerate(self._signed):
            if complaint := complaint_of(row, scores, [array[row] for array in picked_values]):
                yield complaint

    def _rank_complaint(self, row: int, scores: Array, picked_values: Sequence[Array]) -> str:
        """The first rank of a row that has no element of about the score that it should have."""
        order = np.argsort(scores, kind="stable")
        ascending, ordered = scores[order], scores[order[::-1]]
        free = np.ones(scores.size, bool)
        for rank in range(self.count):
            ends = ordered[rank] - 2 * self.delta, ordered[rank] + 2 * self.delta
            low, high = np.searchsorted(ascending, ends[0]), np.searchsorted(ascending, ends[1], "right")
            near = order[low:high]
            near = near[free[near]]
            fits = self._fitting(row, near, [array[rank] for array in picked_values])
            if not fits.size:
                score = ordered[rank] if self.largest else -ordered[rank]
                return (
                    f"{self._listed()} at rank {rank} of row {row} are of no element whose score is "
                    f"{score:.6g} within {2 * self.delta:.2g}, or of one selected before"
                )
            free[fits[np.abs(scores[fits] - ordered[rank]).argmax()]] = False
        return ""

    def _row_complaint(self, row: int, scores: Array, picked_values: Sequence[Array]) -> str:
        """Return what is wrong with a row of unordered ranks, or the empty string."""
        order = np.argsort(-scores, kind="stable")
        cut, reach = scores[order[self.count - 1]], 2 * self.delta
        free = np.ones(self.count, bool)
        for element in order[scores[order] >= cut - reach]:
            ranks = np.flatnonzero(free)
            if not ranks.size:
                break
            off = self._distances(row, int(element), [array[ranks] for array in picked_values])
            if off.min() < np.inf:
                free[ranks[off.argmin()]] = False
            elif scores[element] > cut + reach:
                return (
                    f"{self._listed()} lack element {int(element)} of row {row}, one of the best {self.count}"
                )
        if free.any():
            rank = int(np.flatnonzero(free)[0])
            return (
                f"{self._listed()} at rank {rank} of row {row} are of none of the best {self.count} elements"
            )
        return ""

    def _distances(self, row: int, element: int, picked_values: Sequence[Array]) -> Array:
        """How far the values at some ranks are from those of an element; infinite if it is another."""
        total = np.zeros(len(picked_values[0]))
        for table, allowed, values in zip(self.tables, self.allowed, picked_values, strict=True):
            off = np.abs(values.astype(np.float64) - table[row][element].astype(np.float64))
            largest = off.reshape(len(values), -1).max(axis=1, initial=0.0)
            total += np.where(largest <= allowed, largest, np.inf)
        return total

    def _fitting(self, row: int, candidates: Array, picked_values: Sequence[Array]) -> Array:
        """Those of some elements that have in all tables what was found."""
        for table, allowed, value in zip(self.tables, self.allowed, picked_values, strict=True):
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
        return {name: getattr(self, name) for name in _FACTS}

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
            int(facts["inner"]),
            bool(facts["is_sorted"]),
            None if facts["index"] is None else int(facts["index"]),
        )


def _difference(found: Array, expected: Array) -> float:
    off = np.abs(found.astype(np.float64) - expected.astype(np.float64))
    return float(np.nan_to_num(off, nan=np.inf).max(initial=0.0))


CHECK_KINDS.register(PickCheck.kind, PickCheck)
