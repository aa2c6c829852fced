"""The table of candidates for the whole model, with the intervals of their ratios as positions on a scale."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from intarsia.report.explanation import ContestRecord, Explanation
from intarsia.report.toolchain_colours import toolchain_class
from intarsia.report.waterfall import fastest_engine
from intarsia.support.units import NOTHING, duration_text, error_text


@dataclass(frozen=True, slots=True)
class VerdictRow:
    """A candidate for the whole model.

    Attributes:
        record: Its record.
        latency: Latency as text.
        ratio: Ratio to the winner with its interval as text, or the outcome.
        spot: Position of the ratio on the scale in percent; None without a ratio.
        span: Position and width of the interval in percent; None if it is open.
        colour: Class of CSS.
        error: Largest error as text; "" if it was not compared.
    """

    record: ContestRecord
    latency: str
    ratio: str
    spot: float | None
    span: tuple[float, float] | None
    colour: str
    error: str


@dataclass(frozen=True, slots=True)
class RatioScale:
    """A logarithmic scale of ratios.

    Attributes:
        low: Smallest ratio.
        high: Largest ratio.
    """

    low: float
    high: float

    @classmethod
    def of(cls, contest: Sequence[ContestRecord]) -> RatioScale:
        """Return the scale that contains every ratio and interval."""
        present = [
            ratio
            for record in contest
            for ratio in (record.ratio, record.ratio_low, record.ratio_high)
            if ratio is not None and ratio > 0
        ]
        return cls(min([0.95, *present]), max([1.2, *present]))

    def spot(self, ratio: float) -> float:
        """Return the position of a ratio in percent."""
        least = math.log(self.low)
        return round(100 * (math.log(ratio) - least) / (math.log(self.high) - least), 1)


def verdict_rows(explanation: Explanation, scale: RatioScale) -> tuple[VerdictRow, ...]:
    """Return the candidates for the whole model, the winner first."""
    return tuple(_row(record, scale) for record in explanation.contest)


def _row(record: ContestRecord, scale: RatioScale) -> VerdictRow:
    ratio, low, high = record.ratio, record.ratio_low, record.ratio_high
    span = None
    if low is not None and high is not None and low > 0:
        left = scale.spot(low)
        span = (left, round(scale.spot(high) - left, 1))
    return VerdictRow(
        record,
        _optional(record.seconds),
        standing(record),
        None if ratio is None else scale.spot(ratio),
        span,
        toolchain_class(_toolchain(record)),
        "" if record.max_error is None else error_text(record.max_error),
    )


def _optional(seconds: float | None) -> str:
    return NOTHING if seconds is None else duration_text(seconds)


def standing(record: ContestRecord) -> str:
    """Return the ratio of a candidate to the winner with its interval, or its outcome, as text."""
    if record.ratio is None:
        return record.status
    if record.is_chosen:
        return "1.000"
    if record.ratio_low is None or record.ratio_high is None:
        return f"{record.ratio:.3f} (too few rounds for an interval)"
    return f"{record.ratio:.3f} ({record.ratio_low:.3f} to {record.ratio_high:.3f})"


def _toolchain(record: ContestRecord) -> str:
    """Return the toolchain of a candidate; of a mix, the first one of its name."""
    return record.name.partition(" ")[0].partition(",")[0]


def headline(explanation: Explanation) -> str:
    """Return the verdict in a sentence or two."""
    winner = next((record for record in explanation.contest if record.is_chosen), None)
    if winner is None or winner.seconds is None:
        return "Stored measurements; no winner was chosen."
    text = f"{winner.name} was chosen: {duration_text(winner.seconds)} for one call."
    engine = fastest_engine(explanation)
    return text if engine is None else f"{text} {_lead(engine)}"


def _lead(engine: ContestRecord) -> str:
    """Return how the fastest other toolchain alone compares with the winner."""
    if engine.ratio is None:
        return (
            f"{engine.name} alone took {_optional(engine.seconds)} in a single measurement, too long to race."
        )
    low, high = engine.ratio_low, engine.ratio_high
    if low is None or high is None:
        return f"{engine.name} alone took {engine.ratio:.3f} times as long (too few rounds for an interval)."
    interval = f"95 % interval {low:.3f} to {high:.3f}"
    if low <= 1 <= high:
        return f"{engine.name} alone is within noise of it: {engine.ratio:.3f} times as long ({interval})."
    return f"{engine.name} alone took {engine.ratio:.3f} times as long ({interval})."


@dataclass(frozen=True, slots=True)
class SizeRow:
    """Latencies at sizes of the symbolic dimensions.

    Attributes:
        sizes: The sizes as text.
        latencies: Latency of each candidate as text.
        ratio: Latency of the winner over that of the fastest other candidate, as text.
    """

    sizes: str
    latencies: tuple[str, ...]
    ratio: str


@dataclass(frozen=True, slots=True)
class SizeRows:
    """The table of latencies by size.

    Attributes:
        names: Names of the candidates.
        rows: A row for each size, small ones first.
    """

    names: tuple[str, ...]
    rows: tuple[SizeRow, ...]


def size_rows(explanation: Explanation) -> SizeRows | None:
    """Return the latencies at each size of the symbolic dimensions; None for a program without any."""
    raced = [record for record in explanation.contest if record.by_size]
    winner = next((record for record in raced if record.is_chosen), None)
    if winner is None:
        return None
    tables = [dict(record.by_size) for record in raced]
    rows = []
    for sizes, seconds in sorted(winner.by_size, key=lambda pair: elements(pair[0])):
        others = [
            table[sizes]
            for record, table in zip(raced, tables, strict=True)
            if record is not winner and sizes in table
        ]
        texts = (duration_text(table[sizes]) if sizes in table else NOTHING for table in tables)
        ratio = f"{seconds / min(others):.3f}" if others else NOTHING
        rows.append(SizeRow(sizes, tuple(texts), ratio))
    return SizeRows(tuple(record.name for record in raced), tuple(rows))


def elements(sizes: str) -> int:
    """Return the product of the sizes in a text such as batch=4, seq=23: small inputs come first."""
    return math.prod(map(int, re.findall(r"=(\d+)(?:, |$)", sizes)))
