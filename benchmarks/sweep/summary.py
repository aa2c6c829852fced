"""Summary of a sweep: ratios, losses by cause, and the worst layers."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.sweep.contest import NATIVE, TOLERANCE

Record = Mapping[str, Any]

_FEWEST: Final = 2
"""Number of layers with a property from which on it is listed by itself."""
_LISTED: Final = 25
"""Largest number of properties that are listed."""


@dataclass(frozen=True)
class Group:
    """Layers that have something in common.

    Attributes:
        name: Property that they have in common.
        layers: Number of layers, with those that native refuses.
        refused: Number of layers that native refuses.
        losses: Number of layers on which native is slower than the better engine, without those it refuses.
        mean: Geometric mean of the ratios; NaN if there are none.
        least: Least ratio; NaN if there are none.
        of_bound: Median share of the roofline that native reaches on layers it loses; NaN if there are none.
    """

    name: str
    layers: int
    refused: int
    losses: int
    mean: float
    least: float
    of_bound: float

    @property
    def ahead(self) -> float:
        """Share of the layers on which native is at least as fast as the better engine."""
        return 1 - (self.losses + self.refused) / self.layers if self.layers else math.nan


def is_refused(record: Record) -> bool:
    """Whether native does not run a layer that an engine runs."""
    return NATIVE in record["errors"] and len(record["seconds"]) > 0


def is_wrong(record: Record) -> bool:
    """Whether native's results differ from the engine's."""
    return record["error"] is not None and not record["error"] <= record.get(
        "tolerance", TOLERANCE["float32"]
    )


def summarise_group(name: str, records: Sequence[Record]) -> Group:
    """Return the summary of some records."""
    ratios = [record["ratio"] for record in records if record["ratio"] is not None]
    lost = [record for record in records if record["ratio"] is not None and record["ratio"] < 1]
    return Group(
        name,
        len(records),
        sum(map(is_refused, records)),
        len(lost),
        statistics.geometric_mean(ratios) if ratios else math.nan,
        min(ratios, default=math.nan),
        statistics.median(record["of_bound"] for record in lost) if lost else math.nan,
    )


def group_records(
    records: Iterable[Record], keys: Callable[[Record], Iterable[str]], fewest: int = 1
) -> list[Group]:
    """Return a summary for each key that records have, the greatest total loss first.

    Args:
        records: Records of layers.
        keys: Function that returns the keys of a record.
        fewest: Least number of layers with a key.
    """
    by_key: defaultdict[str, list[Record]] = defaultdict(list)
    for record in records:
        for key in keys(record):
            by_key[key].append(record)
    kept = {key: group for key, group in by_key.items() if len(group) >= fewest}
    ordered = sorted(kept.items(), key=lambda item: -sum(map(loss_of, item[1])))
    return [summarise_group(key, group) for key, group in ordered]


def loss_of(record: Record) -> float:
    """Return the logarithm of the engine's speed over native's, at least 0; 1 for a refused layer."""
    if record["ratio"] is None:
        return float(is_refused(record))
    return max(0.0, -math.log(record["ratio"]))


def cause_of(record: Record) -> str:
    """Return the family of a layer and its most specific property."""
    return ": ".join([record["family"], *record["properties"][:1]])


def describe(records: Sequence[Record], worst: int = 10) -> str:
    """Return the report of a sweep.

    Args:
        records: Records of all layers.
        worst: Number of the worst layers that are named.
    """
    whole = summarise_group("all", records)
    measured = [record for record in records if record["ratio"] is not None]
    lines = [
        f"{whole.layers} layers, {len(measured)} compared, {whole.refused} refused by native",
        f"geometric mean {whole.mean:.3f}, {whole.ahead:.1%} ahead, minimum {whole.least:.3f}; "
        f"under 0.8: {sum(record['ratio'] < 0.8 for record in measured)}; "
        f"geometric mean of the shortest calls {_mean_least(measured):.3f}",
        "",
        *_table("family", group_records(records, lambda record: [record["family"]])),
        "",
        *_table("loss by cause", _lossy(group_records(records, cause_of_all))),
        "",
        *_table("loss by property", _slow_properties(records)),
    ]
    lines += ["", f"the {worst} worst:"]
    lines += [f"  {_line(record)}" for record in sorted(measured, key=lambda item: item["ratio"])[:worst]]
    refused = [record for record in records if is_refused(record)]
    lines += ["", "refused by native:"] * bool(refused)
    lines += [f"  --case {record['case']!r}: {record['errors'][NATIVE]}" for record in refused]
    wrong = [record for record in records if is_wrong(record)]
    lines += ["", "results of native that differ from the engine's:"] * bool(wrong)
    lines += [
        f"  --case {record['case']!r}: {record['error']:.1e}, between the engines "
        f"{math.nan if record['engines_differ'] is None else record['engines_differ']:.1e}"
        for record in wrong
    ]
    return "\n".join(lines)


def _mean_least(records: Sequence[Record]) -> float:
    return statistics.geometric_mean(record["least_ratio"] for record in records) if records else math.nan


def cause_of_all(record: Record) -> list[str]:
    """Return the cause of a record, as the only key."""
    return [cause_of(record)]


def _properties(record: Record) -> list[str]:
    return [f"{record['family']}: {name}" for name in record["properties"]]


def _slow_properties(records: Sequence[Record]) -> list[Group]:
    """Return the properties with which native is slower on average, those that lose most."""
    groups = group_records(records, _properties, _FEWEST)
    return [group for group in groups if not group.mean >= 1][:_LISTED]


def _lossy(groups: Iterable[Group]) -> list[Group]:
    return [group for group in groups if group.losses or group.refused]


def _table(title: str, groups: Iterable[Group]) -> list[str]:
    lines = [f"{title:60} layers  lost refused   mean    min  of roofline where lost"]
    for group in groups:
        share = "-" if math.isnan(group.of_bound) else f"{group.of_bound:.0%}"
        lines.append(
            f"{group.name:60} {group.layers:6} {group.losses:5} {group.refused:7} {group.mean:6.2f} "
            f"{group.least:6.2f}  {share}"
        )
    return lines


def _line(record: Record) -> str:
    times = ", ".join(f"{name} {1e3 * value:.3f}" for name, value in record["seconds"].items())
    low, high = record["range"]
    ratios = f"{record['ratio']:.2f} ({low:.2f} to {high:.2f}; shortest calls {record['least_ratio']:.2f})"
    return (
        f"{ratios} --case {record['case']!r}: {times} ms; "
        f"{record['of_bound']:.0%} of the roofline; {', '.join(record['properties'])}"
    )
