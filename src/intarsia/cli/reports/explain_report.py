"""An explanation as tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from intarsia.cli.reports.explain_node import NodeMatch, find_nodes
from intarsia.cli.reports.report import Block, Report
from intarsia.cli.reports.search_line import loss_line, search_line
from intarsia.cli.reports.table import Table
from intarsia.cli.reports.units import NOTHING, duration_text, interval_text
from intarsia.driver.explain.explained_function import Compared, ExplainedRegion, Fate, Rival, Tried
from intarsia.driver.explain.explanation import ContestRecord, Explanation

SHOWN: Final = 5
"""Candidates of a region, and ways to run the whole model besides single toolchains, without --all."""

ALL: Final = "--all lists them"
TUNE: Final = "intarsia tune measures more"
OTHER_PARTS: Final = (
    "what candidates cost more is against what was predicted to be the cheapest: the winner was found by "
    "measuring whole models, and some of its parts were never measured alone"
)
_EQUAL: Final = 0.005
"""Losses that differ by less than this part are told as one."""


@dataclass(frozen=True, slots=True)
class _Numbered:
    """A region with what it is called in tables."""

    name: str
    region: ExplainedRegion


def explain_report(explanation: Explanation, node: str | None, *, everything: bool) -> Report:
    """The report of `intarsia explain`.

    Args:
        explanation: What is to be told.
        node: Only of this node: a name, a number, or an operator.
        everything: Whether every candidate is listed.

    Raises:
        UsageError: There is no such node.
    """
    if node is not None:
        return _node_report(explanation, find_nodes(explanation, node), everything)
    return Report(explanation.to_json(), tuple(_blocks(explanation, everything)))


def _blocks(explanation: Explanation, everything: bool) -> Iterable[Block]:
    found = f"{explanation.chosen} was chosen" if explanation.chosen else "what has been measured"
    yield f"{explanation.model}: {found} on {explanation.cpu} ({explanation.cores} cores)"
    yield from _contest(explanation.contest, everything)
    if explanation.decisions:
        yield f"decided on the program first: {'; '.join(explanation.decisions)}"
    regions = _numbered(explanation)
    if regions:
        yield _region_table(regions)
        yield from (_rival_text(each.name, each.region.rival) for each in regions if each.region.rival)
        yield from _candidates(regions, everything, is_tuned=bool(explanation.chosen))
    yield from _footnotes(explanation)


def _contest(contest: Sequence[ContestRecord], everything: bool) -> Iterable[Block]:
    """All ways to run the whole model, and what was wrong with some."""
    mixed = [each for each in contest if not each.is_whole]
    hidden = set() if everything else {id(each) for each in mixed[SHOWN:] if not each.is_chosen}
    shown = [each for each in contest if id(each) not in hidden]
    rows = tuple(
        (
            each.name,
            _optional_duration(each.seconds),
            _standing(each),
            _optional_duration(each.predicted),
            "yes" if each.is_chosen else "",
        )
        for each in shown
    )
    chosen = next((index for index, each in enumerate(shown) if each.is_chosen), None)
    headers = ("whole model", "latency", "ratio to the best", "predicted", "chosen")
    yield Table(headers, rows, frozenset({1, 3}), chosen)
    yield from (f"{each.name}: {each.status}: {each.reason}" for each in shown if each.reason)
    if hidden:
        yield f"{len(hidden)} more ways to run it were measured: {ALL}"


def _standing(record: ContestRecord) -> str:
    if record.ratio is None:
        return record.status
    if record.is_chosen:
        return "1.000"
    if record.ratio_low is None or record.ratio_high is None:
        return f"{record.ratio:.3f} (too few rounds for an interval)"
    return f"{record.ratio:.3f} ({record.ratio_low:.3f} to {record.ratio_high:.3f})"


def _numbered(explanation: Explanation) -> list[_Numbered]:
    pairs = [(function, region) for function in explanation.functions for region in function.regions]
    return [
        _Numbered(str(number) if function.name == "main" else f"{number} @{function.name}", region)
        for number, (function, region) in enumerate(pairs, start=1)
    ]


def _region_table(regions: Sequence[_Numbered]) -> Table:
    headers = ("region", "toolchain", "operators", "nodes", "alone", "interval", "in the model")
    rows = tuple(
        (
            each.name,
            each.region.toolchain,
            each.region.label,
            each.region.nodes,
            _optional_duration(each.region.predicted),
            _optional_interval(each.region.low, each.region.high),
            _optional_duration(each.region.measured),
        )
        for each in regions
    )
    return Table(headers, rows, frozenset({4, 6}))


def _rival_text(region: str, rival: Rival) -> str:
    """The runner-up, and what would have to change for it to win."""
    parts = ", ".join(f"{each.spec} ({each.label})" for each in rival.parts[:SHOWN])
    more = len(rival.parts) - SHOWN
    name = f"{parts} and {more} more parts" if more > 0 else parts
    return f"region {region}: the runner-up is {name}: {_to_win(rival)}"


def _to_win(rival: Rival) -> str:
    if rival.loss <= 0:
        less = duration_text(-rival.loss)
        return f"by parts it takes {less} less; measuring whole models decided against it"
    more = f"it takes {duration_text(rival.loss)} more"
    if rival.faster >= 1:
        return f"{more}; it cannot win by being faster, as its borders alone cost more"
    return f"{more}; to win it would have to be {rival.faster:.1%} faster"


def _candidates(regions: Sequence[_Numbered], everything: bool, *, is_tuned: bool) -> Iterable[Block]:
    rows, hidden = [], 0
    for each in regions:
        listed = _worth_showing(each.region.tried, everything)
        rows += [(each.name, tried) for tried in (listed if everything else listed[:SHOWN])]
        hidden += 0 if everything else len(listed[SHOWN:])
    if rows:
        yield _candidate_table("region", rows, is_tuned=is_tuned)
    if hidden:
        yield f"{_candidates_text(hidden)} that lost by more, or failed: {ALL}"
    if not everything:
        yield from _untried_lines([tried for each in regions for tried in each.region.tried])
    left_out = sum(each.region.left_out for each in regions)
    if left_out:
        yield f"{_candidates_text(left_out)} not kept"


def _worth_showing(tried: Sequence[Tried], everything: bool) -> list[Tried]:
    return [each for each in tried if everything or each.fate is not Fate.NOT_TRIED]


def _footnotes(explanation: Explanation) -> Iterable[str]:
    searches = [each.search for each in explanation.functions if each.search is not None]
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
    tried = list(dict.fromkeys(one for match in matches for one in match.tried))
    listed = _worth_showing(tried, everything)
    blocks: list[Block] = [
        f"node {match.text}: {region.toolchain} runs it, in {region.label} ({region.nodes})"
        for match in matches
        for region in match.regions
    ]
    if listed:
        held = {
            each: ", ".join(str(match.node.number) for match in matches if each in match.tried)
            for each in listed
        }
        rows = [(held[each], each) for each in listed]
        blocks.append(_candidate_table("node", rows, is_tuned=bool(explanation.chosen)))
    blocks += [] if everything else _untried_lines(tried)
    blocks += [f"{name} was proposed nothing with node {match.node.number}: it does not run such an operator"
               for match in matches for name in match.silent]  # fmt: skip
    document: dict[str, Any] = {
        "model": explanation.model,
        "chosen": explanation.chosen,
        "nodes": [match.to_json() for match in matches],
    }
    return Report(document, tuple(blocks))


def _candidate_table(first: str, rows: Sequence[tuple[str, Tried]], *, is_tuned: bool) -> Table:
    """A row for each candidate.

    Args:
        first: What the first column is called.
        rows: What stands in it, and the candidate.
        is_tuned: Whether something was chosen, or would be.
    """
    headers = (first, "candidate", "operators", "nodes", "alone", "interval", "what became of it")
    texts = tuple(
        (
            text,
            tried.spec,
            tried.label,
            tried.nodes,
            _optional_duration(tried.seconds),
            _optional_interval(tried.low, tried.high),
            _fate_text(tried) if is_tuned or tried.fate is not Fate.CHOSEN else "would be chosen",
        )
        for text, tried in rows
    )
    return Table(headers, texts, frozenset({4}))


def _untried_lines(tried: Sequence[Tried]) -> list[str]:
    """How many of some candidates were not tried, by reason."""
    reasons = Counter(each.message for each in tried if each.fate is Fate.NOT_TRIED)
    return [f"{_candidates_text(count)} not tried: {reason}" for reason, count in reasons.most_common()]


def _candidates_text(count: int) -> str:
    """A number of candidates: "1 candidate"."""
    return f"{count} candidate{'' if count == 1 else 's'}"


def _fate_text(tried: Tried) -> str:
    """What became of a candidate, and by how much it lost."""
    if tried.fate is not Fate.LOST:
        return f"{tried.fate}: {tried.message}" if tried.message else str(tried.fate)
    low, high = tried.loss_low, tried.loss_high
    if high is None:
        if low is None:
            return "lost: what would have to run beside it is not known"
        return f"lost: at least {duration_text(low)} more" if low > 0 else "lost"
    if high <= 0:
        return f"lost where whole models were measured; by parts it takes {duration_text(-high)} less"
    if low is None or low <= 0:
        return f"lost: up to {duration_text(high)} more"
    if high - low <= _EQUAL * high:
        return f"lost: {duration_text(high)} more"
    return f"lost: {duration_text(low)} to {duration_text(high)} more"


def _optional_duration(seconds: float | None) -> str:
    """A duration, or "-"."""
    return NOTHING if seconds is None else duration_text(seconds)


def _optional_interval(low: float | None, high: float | None) -> str:
    """An interval of durations, or "-"."""
    return NOTHING if low is None or high is None else interval_text(low, high)
