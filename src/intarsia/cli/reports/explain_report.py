"""Report of an explanation as tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from intarsia.cli.reports.explain_node import NodeMatch, find_nodes
from intarsia.cli.reports.report import Block, Report
from intarsia.cli.reports.table import Table
from intarsia.report.explained_function import Compared, ExplainedRegion, Fate, Rival, Tried
from intarsia.report.explanation import ContestRecord, Explanation
from intarsia.report.outcome_text import fate_text, to_win_text
from intarsia.report.search_line import loss_line, search_line
from intarsia.report.verdict import standing
from intarsia.support.units import NOTHING, duration_text, interval_text

SHOWN: Final = 5
"""Maximum number of candidates of a region, and of mixed candidates for the whole model, without --all."""

ALL: Final = "--all lists them"
TUNE: Final = "intarsia tune measures more"
OTHER_PARTS: Final = (
    "losses of candidates are relative to the cheapest prediction: the winner was found by "
    "measuring whole models, and some of its parts were never measured alone"
)


@dataclass(frozen=True, slots=True)
class _Numbered:
    """A region with its name in tables."""

    name: str
    region: ExplainedRegion


def explain_report(explanation: Explanation, node: str | None, *, everything: bool) -> Report:
    """Return the report of `intarsia explain`.

    Args:
        explanation: Explanation to show.
        node: Node to show alone: a name, a number, or an operator; None for all.
        everything: Whether every candidate is listed.

    Raises:
        UsageError: There is no such node.
    """
    if node is not None:
        return _node_report(explanation, find_nodes(explanation, node), everything)
    return Report(explanation.to_json(), tuple(_blocks(explanation, everything)))


def _blocks(explanation: Explanation, everything: bool) -> Iterable[Block]:
    yield f"{explanation.model}: {_headline(explanation)} on {explanation.cpu} ({explanation.cores} cores)"
    yield from _contest(explanation.contest, everything)
    if explanation.decisions:
        yield f"decided on the program first: {'; '.join(explanation.decisions)}"
    regions = _number_regions(explanation)
    if regions:
        yield _region_table(regions)
        yield from (_rival_text(item.name, item.region.rival) for item in regions if item.region.rival)
        yield from _candidates(regions, everything, is_tuned=bool(explanation.chosen))
    yield from _footnotes(explanation)


def _headline(explanation: Explanation) -> str:
    if explanation.chosen:
        return f"{explanation.chosen} was chosen"
    searches = [function.search for function in explanation.functions if function.search is not None]
    if any(record.seconds for record in explanation.contest) or any(search.known for search in searches):
        return "stored measurements"
    return "nothing is stored for these inputs, sizes and threads"


def _contest(contest: Sequence[ContestRecord], everything: bool) -> Iterable[Block]:
    """Yield the table of candidates for the whole model, and the reasons of failures."""
    mixed = [record for record in contest if not record.is_whole]
    hidden = set() if everything else {id(record) for record in mixed[SHOWN:] if not record.is_chosen}
    shown = [record for record in contest if id(record) not in hidden]
    rows = tuple(
        (
            record.name,
            _optional_duration(record.seconds),
            standing(record),
            _optional_duration(record.predicted),
            "yes" if record.is_chosen else "",
        )
        for record in shown
    )
    chosen = next((index for index, record in enumerate(shown) if record.is_chosen), None)
    headers = ("whole model", "latency", "ratio to the best", "predicted", "chosen")
    yield Table(headers, rows, frozenset({1, 3}), chosen)
    yield from (f"{record.name}: {record.status}: {record.reason}" for record in shown if record.reason)
    if hidden:
        yield f"{len(hidden)} more ways to run it were measured: {ALL}"


def _number_regions(explanation: Explanation) -> list[_Numbered]:
    pairs = [(function, region) for function in explanation.functions for region in function.regions]
    return [
        _Numbered(str(number) if function.name == "main" else f"{number} @{function.name}", region)
        for number, (function, region) in enumerate(pairs, start=1)
    ]


def _region_table(regions: Sequence[_Numbered]) -> Table:
    headers = ("region", "toolchain", "operators", "nodes", "alone", "interval", "in the model")
    rows = tuple(
        (
            numbered.name,
            numbered.region.toolchain,
            numbered.region.label,
            numbered.region.nodes,
            _optional_duration(numbered.region.predicted),
            _optional_interval(numbered.region.low, numbered.region.high),
            _optional_duration(numbered.region.measured),
        )
        for numbered in regions
    )
    return Table(headers, rows, frozenset({4, 6}))


def _rival_text(region: str, rival: Rival) -> str:
    """Return a sentence on the runner-up, and what would have to change for it to win."""
    parts = ", ".join(f"{part.spec} ({part.label})" for part in rival.parts[:SHOWN])
    more = len(rival.parts) - SHOWN
    name = f"{parts} and {more} more parts" if more > 0 else parts
    return f"region {region}: the runner-up is {name}: {to_win_text(rival)}"


def _candidates(regions: Sequence[_Numbered], everything: bool, *, is_tuned: bool) -> Iterable[Block]:
    rows, hidden = [], 0
    for numbered in regions:
        listed = _worth_showing(numbered.region.tried, everything)
        rows += [(numbered.name, tried) for tried in (listed if everything else listed[:SHOWN])]
        hidden += 0 if everything else len(listed[SHOWN:])
    if rows:
        yield _candidate_table("region", rows, is_tuned=is_tuned)
    if hidden:
        yield f"{_candidates_text(hidden)} that lost by more, or failed: {ALL}"
    if not everything:
        yield from _untried_lines([tried for numbered in regions for tried in numbered.region.tried])
    left_out = sum(numbered.region.left_out for numbered in regions)
    if left_out:
        yield f"{_candidates_text(left_out)} not kept"


def _worth_showing(tried: Sequence[Tried], everything: bool) -> list[Tried]:
    return [item for item in tried if everything or item.fate is not Fate.NOT_TRIED]


def _footnotes(explanation: Explanation) -> Iterable[str]:
    searches = [function.search for function in explanation.functions if function.search is not None]
    if any(search.compared is Compared.PREDICTED for search in searches):
        yield OTHER_PARTS
    if explanation.search is not None:
        yield search_line(explanation.search)
    if explanation.losses is not None:
        yield loss_line(explanation.losses)
    yield from explanation.notes
    if not explanation.chosen:
        yield TUNE


def _node_report(explanation: Explanation, matches: Sequence[NodeMatch], everything: bool) -> Report:
    tried = list(dict.fromkeys(candidate for match in matches for candidate in match.tried))
    listed = _worth_showing(tried, everything)
    blocks: list[Block] = [
        f"node {match.text}: {region.toolchain} runs it, in {region.label} ({region.nodes})"
        for match in matches
        for region in match.regions
    ]
    if listed:
        held = {
            candidate: ", ".join(str(match.node.number) for match in matches if candidate in match.tried)
            for candidate in listed
        }
        rows = [(held[candidate], candidate) for candidate in listed]
        blocks.append(_candidate_table("node", rows, is_tuned=bool(explanation.chosen)))
    blocks += [] if everything else _untried_lines(tried)
    blocks += [f"{name} has no candidate with node {match.node.number}: it does not support the operator"
               for match in matches for name in match.silent]  # fmt: skip
    document: dict[str, Any] = {
        "model": explanation.model,
        "chosen": explanation.chosen,
        "nodes": [match.to_json() for match in matches],
    }
    return Report(document, tuple(blocks))


def _candidate_table(first: str, rows: Sequence[tuple[str, Tried]], *, is_tuned: bool) -> Table:
    """Return a table with a row for each candidate.

    Args:
        first: Header of the first column.
        rows: Text of the first column, and candidate, of each row.
        is_tuned: Whether a winner was chosen; else a chosen candidate would be chosen.
    """
    headers = (first, "candidate", "operators", "nodes", "alone", "interval", "outcome")
    texts = tuple(
        (
            text,
            tried.spec,
            tried.label,
            tried.nodes,
            _optional_duration(tried.seconds),
            _optional_interval(tried.low, tried.high),
            fate_text(tried) if is_tuned or tried.fate is not Fate.CHOSEN else "would be chosen",
        )
        for text, tried in rows
    )
    return Table(headers, texts, frozenset({4}))


def _untried_lines(tried: Sequence[Tried]) -> list[str]:
    """Return lines with the number of candidates that were not tried, by reason."""
    reasons = Counter(item.message for item in tried if item.fate is Fate.NOT_TRIED)
    return [f"{_candidates_text(count)} not tried: {reason}" for reason, count in reasons.most_common()]


def _candidates_text(count: int) -> str:
    """Return a number of candidates in words: "1 candidate"."""
    return f"{count} candidate{'' if count == 1 else 's'}"


def _optional_duration(seconds: float | None) -> str:
    """Format a duration, or "-"."""
    return NOTHING if seconds is None else duration_text(seconds)


def _optional_interval(low: float | None, high: float | None) -> str:
    """Format an interval of durations, or "-"."""
    return NOTHING if low is None or high is None else interval_text(low, high)
