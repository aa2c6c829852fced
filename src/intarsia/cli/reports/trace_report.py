"""Report of the candidates of tuning passes, as a tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from intarsia.cli.reports.report import Report
from intarsia.support.plain_record import to_plain

if TYPE_CHECKING:
    from intarsia.report.explanation import Explanation


def trace_report(explanation: Explanation) -> Report:
    """Return the report of `intarsia explain --trace`: passes and candidates, with costs and fates.

    Args:
        explanation: Explanation of an artifact.
    """
    document = {
        "model": explanation.model,
        "chosen": explanation.chosen,
        "decisions": list(explanation.decisions),
        "tuning": to_plain(explanation.tuning),
    }
    trees = ["\n".join(tree.lines()) for tree in explanation.tuning]
    if not trees:
        trees = ["no tuning pass tried anything: there was no pass, no time, or no way to verify results"]
    decided = "; ".join(explanation.decisions) or "nothing on the program"
    return Report(document, (*trees, f"{explanation.chosen} was chosen, which decides {decided}"))
