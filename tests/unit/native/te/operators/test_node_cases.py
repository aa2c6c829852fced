"""ONNX's backend node tests of the operators that have compute rules, lowered without a schedule."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.backend.cases import Case, onnx_cases
from tests.unit.native.te.operators.node_cases import QUICK, Fate, Outcome, outcome, outcomes
from tests.unit.native.te.operators.operator_page import operator_page

PAGE = Path(__file__).parents[5] / "docs/native_operators.md"


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return onnx_cases(("node",))


@pytest.fixture(scope="module")
def found(cases: list[Case]) -> list[Outcome]:
    return outcomes(cases)


@pytest.mark.slow
def test_what_is_covered_is_right(found: list[Outcome]) -> None:
    wrong = [f"{each.name}: {each.reason}" for each in found if each.fate is Fate.WRONG]
    assert not wrong, "\n".join(wrong)
    right = [each for each in found if each.fate is Fate.RIGHT]
    assert len(right) > 900, "so many cases are there that a rule refuses too much"


@pytest.mark.slow
def test_the_page_is_current(found: list[Outcome], pytestconfig: pytest.Config) -> None:
    text = operator_page(found)
    if pytestconfig.getoption("--update-golden"):
        PAGE.write_text(text, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == text, "run this test with --update-golden"


@pytest.mark.slow
def test_large_cases_interpreted(cases: list[Case], found: list[Outcome]) -> None:
    large = {each.name: each.operators for each in found if each.iterations > QUICK}
    assert large
    judged = [outcome(case, large[case.name], is_quick=False) for case in cases if case.name in large]
    assert [each.fate for each in judged] == [Fate.RIGHT] * len(large)
