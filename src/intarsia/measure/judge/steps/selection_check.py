"""Check the elements that NonZero selects, and values gathered there: those near a step are optional."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Self

import numpy as np

from intarsia.measure.judge.gate_report import EQUAL, Array, GateReport, structure_report
from intarsia.measure.judge.output_check import CHECK_KINDS, Facts

ROWS: Final = "rows"
"""Positions with an axis a row, as NonZero has them."""
COLUMNS: Final = "columns"
"""Positions with an axis a column."""
FLAT: Final = "flat"
"""Positions in the only axis."""
TABLE: Final = "table"
"""What a table has at the positions."""


@dataclass(frozen=True, slots=True, eq=False)
class SelectionCheck:
    """A check of all outputs that one NonZero selects.

    Attributes:
        where: Positions of the outputs.
        names: Their names.
        expected: Their reference results.
        certain: Elements that have to be selected; of the shape of the argument of NonZero.
        possible: Elements that may be selected.
        forms: Form of the selection in each output: ROWS, COLUMNS, FLAT or TABLE.
        tables: Values of each output for each element, as rows; empty for positions.
        allowed: Allowed difference of the elements of each table.
    """

    kind: ClassVar[str] = "selection"

    where: tuple[int, ...]
    names: tuple[str, ...]
    expected: tuple[Array, ...]
    certain: Array
    possible: Array
    forms: tuple[str, ...]
    tables: tuple[Array, ...]
    allowed: tuple[float, ...]

    @property
    def positions(self) -> tuple[int, ...]:
        """See OutputCheck.positions."""
        return self.where

    @property
    def undecided(self) -> float:
        """Share of the elements that may be selected or not."""
        return float(np.mean(self.certain != self.possible)) if self.certain.size else 0.0

    def check(self, outputs: Sequence[Array]) -> GateReport:
        """See OutputCheck.check."""
        actual = [np.asarray(outputs[position]) for position in self.where]
        complaint = next(self._structure_complaints(actual), "")
        if complaint:
            return structure_report(complaint)
        complaint = next(self._complaints(actual), "")
        if complaint:
            return GateReport(False, 1.0, 1.0, None, complaint, np.inf)
        if all(np.array_equal(*pair) for pair in zip(actual, self.expected, strict=True)):
            return GateReport(True, 0.0, 0.0, None, EQUAL, 0.0)
        message = f"what {self._listed()} select is right; some elements lie within noise of a step"
        return GateReport(True, 0.0, 0.0, None, message, 0.0)

    def _structure_complaints(self, actual: Sequence[Array]) -> Iterator[str]:
        """What is wrong with types and shapes, apart from the number of selected elements."""
        for name, array, expected, form in zip(self.names, actual, self.expected, self.forms, strict=True):
            if array.dtype != expected.dtype:
                yield f'output "{name}" has element type {array.dtype.name}, expected {expected.dtype.name}'
            kept = slice(None, -1) if form == ROWS else slice(1, None)
            if array.ndim != expected.ndim or (form != FLAT and array.shape[kept] != expected.shape[kept]):
                yield f'output "{name}" has shape {array.shape}, expected {expected.shape} but for one axis'
        counts = {self._count(*pair) for pair in zip(actual, self.forms, strict=True)}
        if len(counts) > 1:
            yield f"{self._listed()} are of different numbers of elements: {sorted(counts)}"

    @staticmethod
    def _count(array: Array, form: str) -> int:
        return array.size if form == FLAT else array.shape[-1 if form == ROWS else 0]

    def _complaints(self, actual: Sequence[Array]) -> Iterator[str]:
        selected: Array | None = None
        for name, array, form in zip(self.names, actual, self.forms, strict=True):
            if form == TABLE:
                continue
            array_selected = self._selected(array, form)
            if array_selected is None:
                yield f'output "{name}" has an index outside of an axis of {self.certain.shape}'
                return
            if selected is not None and not np.array_equal(array_selected, selected):
                yield f"{self._listed()} select different elements"
            selected = array_selected
        yield from self._gathered_complaints(actual) if selected is None else self._index_complaints(selected)
        if selected is None:
            return
        for name, array, table, allowed in zip(self.names, actual, self.tables, self.allowed, strict=True):
            if table.size and not _is_near(array.reshape(len(selected), -1), table[selected], allowed).all():
                yield f'output "{name}" has other values than its table at the selected elements'

    def _selected(self, array: Array, form: str) -> Array | None:
        """Flat positions of the selected elements; None if one does not exist."""
        axes = {ROWS: array, COLUMNS: array.T, FLAT: array.reshape(1, -1)}[form]
        sizes = np.array(self.certain.shape).reshape(-1, 1)
        if len(axes) != len(sizes) or (axes < 0).any() or (axes >= sizes).any():
            return None
        return np.ravel_multi_index(tuple(axes), self.certain.shape) if axes.size else np.zeros(0, np.int64)

    def _index_complaints(self, selected: Array) -> Iterator[str]:
        if (np.diff(selected) <= 0).any():
            yield f"{self._listed()} are not in order, or repeat an element"
        certain, possible = self.certain.reshape(-1), self.possible.reshape(-1)
        extra = selected[~possible[selected]]
        if extra.size:
            yield f"{self._listed()} select {self._index(extra[0])}, which is zero, and no step is near"
        lost = np.setdiff1d(np.flatnonzero(certain), selected)
        if lost.size:
            yield f"{self._listed()} lack {self._index(lost[0])}, which is not zero, and no step is near"

    def _gathered_complaints(self, actual: Sequence[Array]) -> Iterator[str]:
        """As `_index_complaints`, where only values of tables are known: they keep their order."""
        rows = [array.reshape(self._count(array, TABLE), -1) for array in actual]
        row = 0
        for position in np.flatnonzero(self.possible.reshape(-1)).tolist():
            fits = row < len(rows[0]) and all(
                _is_near(array[row], table[position], allowed).all()
                for array, table, allowed in zip(rows, self.tables, self.allowed, strict=True)
            )
            if not fits and self.certain.reshape(-1)[position]:
                yield f"{self._listed()} lack element {self._index(position)}, or differ from it in row {row}"
                return
            row += fits
        if row < len(rows[0]):
            yield f"row {row} of {self._listed()} is of no element that is not zero, or out of order"

    def _index(self, position: int) -> str:
        index = np.unravel_index(int(position), self.certain.shape)
        return f"[{', '.join(str(int(i)) for i in index)}]"

    def _listed(self) -> str:
        return " and ".join(f'"{name}"' for name in self.names)

    def around(self, outputs: Sequence[Array]) -> Self:
        """See OutputCheck.around: what is right follows from the argument of NonZero, not from a result."""
        return replace(self, expected=tuple(outputs[position] for position in self.where))

    def loosened(self, bound: float) -> SelectionCheck:
        """See OutputCheck.loosened: steps of a bound are not known; values of tables may be off by it."""
        sizes = [bound * float(np.abs(table).max(initial=0)) for table in self.tables]
        allowed = [old if old == 0 else max(old, new) for old, new in zip(self.allowed, sizes, strict=True)]
        return replace(self, allowed=tuple(allowed))

    def facts(self) -> Facts:
        """See OutputCheck.facts."""
        return {name: getattr(self, name) for name in ("where", "names", "forms", "allowed")}

    def arrays(self) -> Mapping[str, Array]:
        """See OutputCheck.arrays."""
        tables = {f"table_{number}": table for number, table in enumerate(self.tables)}
        return {"certain": self.certain, "possible": self.possible, **tables}

    @classmethod
    def restored(cls, facts: Facts, arrays: Mapping[str, Array], expected: Sequence[Array]) -> Self:
        """See OutputCheck.restored."""
        where = tuple(map(int, facts["where"]))
        return cls(
            where,
            tuple(facts["names"]),
            tuple(expected[position] for position in where),
            arrays["certain"],
            arrays["possible"],
            tuple(facts["forms"]),
            tuple(arrays[f"table_{number}"] for number in range(len(where))),
            tuple(map(float, facts["allowed"])),
        )


def _is_near(values: Array, wanted: Array, allowed: float) -> Array:
    """Which elements are within an allowed difference of others."""
    if values.shape != wanted.shape:
        return np.zeros(1, np.bool_)
    return np.asarray(np.abs(values.astype(np.float64) - wanted.astype(np.float64)) <= allowed)


CHECK_KINDS.register(SelectionCheck.kind, SelectionCheck)
