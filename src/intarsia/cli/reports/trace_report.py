"""What tuning passes tried, as a tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from intarsia.cli.reports.report import Report
from intarsia.support.plain_record import to_plain

if TYPE_CHECKING:
    from intarsia.driver.explain.explanation import Explanation


def trace_report(explanation: Explanation) -> Report:
    """The report of `intarsia explain --trace`: passes, candidates, their costs and fates.

    Args:
        explanation: What an artifact tells.
    """
    document = {
        "model": explanation.model,
        "chosen": explanation.chosen,
        "decisions": list(explanation.decisions),
        "tuning": to_plain(explanation.tuning),
    }
    trees = ["\n".join(tree.lines()) for tree in explanation.tuning]
    if not trees:
        trees = ["no tuning pass tried anything: there was no pass, no time, or no way to check results"]
    decided = "; ".join(explanation.decisions) or "nothing on the program"
    return Report(document, (*trees, f"{explanation.chosen} was chosen, which decides {decided}"))
