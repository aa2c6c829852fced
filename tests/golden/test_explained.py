"""What `intarsia explain` and `intarsia tune` print of a fixed explanation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.explanations import EXPLANATION, UNTUNED

from intarsia.cli.console.console import plain_text
from intarsia.cli.reports.explain_report import explain_report
from intarsia.report.explained_function import Compared, FunctionRecord
from intarsia.report.explanation import Explanation

Check = Callable[[str, str], None]


def compared_with_predicted() -> Explanation:
    """As if the winner were made of parts that nobody measured alone."""
    (function,) = EXPLANATION.functions
    assert function.search is not None
    search = replace(function.search, compared=Compared.PREDICTED, chosen=None, gap=1.0)
    regions = tuple(replace(region, rival=None) for region in function.regions)
    functions: tuple[FunctionRecord, ...] = (
        replace(function, search=search, regions=regions),
        replace(function, name="helper", search=None, regions=regions[1:]),
    )
    return replace(EXPLANATION, functions=functions)


@pytest.mark.parametrize(
    ("name", "explanation", "node", "everything"),
    [
        ("explain.txt", EXPLANATION, None, False),
        ("explain_all.txt", EXPLANATION, None, True),
        ("explain_operator.txt", EXPLANATION, "Relu", False),
        ("explain_name_all.txt", EXPLANATION, "block/conv", True),
        ("explain_number.txt", EXPLANATION, "3", False),
        ("explain_untuned.txt", UNTUNED, None, False),
        ("explain_predicted.txt", compared_with_predicted(), None, False),
    ],
)
def test_text(
    check_golden: Check, name: str, explanation: Explanation, node: str | None, everything: bool
) -> None:
    report = explain_report(explanation, node, everything=everything)
    check_golden(name, plain_text(report.blocks))
