"""All verdicts of a run, and the table of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tests.backend.verdict import Column, Outcome, Verdict


@dataclass(frozen=True)
class Report:
    """What became of all cases.

    Attributes:
        verdicts: Verdicts in any order, one per case and column.
    """

    verdicts: tuple[Verdict, ...]

    @cached_property
    def cases(self) -> tuple[str, ...]:
        """Names of the cases."""
        return tuple(sorted({verdict.case for verdict in self.verdicts}))

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The columns that were run."""
        found = {verdict.column for verdict in self.verdicts}
        return tuple(column for column in Column if column in found)

    def having(self, column: Column, *outcomes: Outcome) -> tuple[Verdict, ...]:
        """Verdicts of a column with one of the outcomes (with any, if none is given), by case."""
        wanted = outcomes or tuple(Outcome)
        found = (item for item in self.verdicts if item.column is column and item.outcome in wanted)
        return tuple(sorted(found, key=lambda item: item.case))

    @cached_property
    def right_by_onnx(self) -> frozenset[str]:
        """Cases that onnx's own evaluator passes on the model as it is."""
        return frozenset(verdict.case for verdict in self.having(Column.ONNX, Outcome.PASSED))

    def wrong(self, column: Column) -> tuple[Verdict, ...]:
        """Cases that onnx's own evaluator passes, and that are wrong in the column."""
        return tuple(item for item in self.having(column, Outcome.WRONG) if item.case in self.right_by_onnx)

    def to_json(self) -> dict[str, Any]:
        """As plain data: the counts, and everything that did not pass."""
        counts = {column: _counts(self.having(column)) for column in self.columns}
        return {
            "cases": len(self.cases),
            "counts": {
                column: {**counts[column], "wrong_unlike_onnx": len(self.wrong(column))} for column in counts
            },
            "verdicts": [verdict.to_json() for verdict in sorted(self.verdicts, key=_place)],
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Report:
        """The report that `to_json` gave this data for."""
        return cls(tuple(map(Verdict.from_json, data["verdicts"])))

    def table(self) -> str:
        """Counts per column; the last one is of the wrong cases that onnx's own evaluator passes."""
        heads = ("", *Outcome, "wrong unlike onnx")
        rows = [heads, *(self._row(column) for column in self.columns)]
        widths = [max(len(row[place]) for row in rows) for place in range(len(heads))]
        lines = [_line(row, widths) for row in rows]
        return "\n".join([f"{len(self.cases)} backend tests of onnx", *lines])

    def _row(self, column: Column) -> tuple[str, ...]:
        counts = _counts(self.having(column))
        return (column, *(str(counts[outcome]) for outcome in Outcome), str(len(self.wrong(column))))

    def listing(self) -> str:
        """The cases per column that are wrong, failed, crashed or hung, with the reason."""
        bad = (Outcome.WRONG, Outcome.FAILED, Outcome.CRASHED, Outcome.HUNG)
        blocks = []
        for column in self.columns:
            lines = [
                f"  {item.outcome} {item.case}: {first_line(item.reason)}"
                for item in self.having(column, *bad)
            ]
            blocks += [f"{column}:", *lines] if lines else []
        return "\n".join(blocks)


def first_line(text: str, width: int = 160) -> str:
    """The beginning of a text."""
    return text.strip().partition("\n")[0][:width]


def _counts(verdicts: Sequence[Verdict]) -> Counter[Outcome]:
    return Counter(verdict.outcome for verdict in verdicts)


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    first, *rest = (text.rjust(width) for text, width in zip(row, widths, strict=True))
    return "  ".join([first.strip().ljust(widths[0]), *rest])


def _place(verdict: Verdict) -> tuple[int, str]:
    return list(Column).index(verdict.column), verdict.case
