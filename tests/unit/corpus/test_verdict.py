from __future__ import annotations

from typing import Any

import pytest
from corpus.models_page import models_page, short_reason
from corpus.recipe import recipes
from corpus.verdict import Verdict, native_share, share_problems

RIGHT = {"status": "right"}


def verdict(**outcomes: dict[str, Any]) -> Verdict:
    record = {"opset": 17, "operators": {"Conv": 2, "Relu": 1}}
    steps = dict.fromkeys(("expected", "import", "judge", "native"), RIGHT)
    return Verdict(recipes()["resnet"], record, {**steps, **outcomes})


def test_a_model_that_is_right_everywhere_has_no_problem() -> None:
    assert verdict(openvino={"status": "refused", "message": "no Foo"}).problems == ()


@pytest.mark.parametrize(
    ("step", "status"),
    [
        ("import", "refused"),
        ("import", "foreign"),
        ("judge", "wrong"),
        ("native", "wrong"),
        ("openvino", "failed"),
        ("openvino", "crashed"),
        ("reference", "foreign"),
        ("native artifact", "wrong"),
        ("native artifact", "refused"),
    ],
)
def test_what_must_not_be_is_a_problem(step: str, status: str) -> None:
    found = verdict(**{step: {"status": status, "message": "the reason"}}).problems
    assert found == (f"{step} is {status}: the reason",)


@pytest.mark.parametrize("mixed", ["refused", "right"])
def test_a_model_that_no_toolchain_runs_whole_is_a_problem(mixed: str) -> None:
    found = verdict(native={"status": "refused"}, mixed={"status": mixed}).problems
    assert found == ("no toolchain runs the whole of it",)


def test_what_onnxruntime_does_not_run_may_be_refused_but_raise_nothing_foreign() -> None:
    expected = {"status": "refused", "message": "not implemented"}
    assert verdict(expected=expected, **{"import": {"status": "refused"}}).problems == ()
    assert verdict(expected=expected, judge={"status": "foreign", "message": "KeyError: 1"}).problems


@pytest.mark.parametrize(
    ("record", "is_float"),
    [
        ({"operators": {"Conv": 1}}, True),
        ({"operators": {"QLinearConv": 1}}, False),
        ({"operators": {"com.microsoft::MatMulNBits": 1}}, False),
        ({"operators": {"DynamicQuantizeLinear": 1}}, False),
        ({"operators": {"DequantizeLinear": 1, "MatMul": 1}}, False),
        ({"operators": {"Conv": 1}, "texts": True}, False),
    ],
)
def test_models_of_floats(record: dict[str, Any], is_float: bool) -> None:
    assert Verdict(recipes()["resnet"], record, {}).is_float is is_float


def test_all_but_opaque_operators_counts_as_whole() -> None:
    refused = {"status": "refused", "message": "no"}
    opaque = {**RIGHT, "whole": False, "opaque": True}
    ordinary = {**RIGHT, "whole": False, "opaque": False}
    assert verdict(native=refused, mixed=RIGHT, cover=opaque).native_whole
    assert not verdict(native=refused, mixed=RIGHT, cover=ordinary).native_whole
    assert not verdict(native=refused, mixed=refused, cover=opaque).native_whole
    assert not verdict(native=refused, mixed=RIGHT).native_whole


def test_a_right_result_is_not_enough_to_count_as_whole() -> None:
    assert verdict(cover={**RIGHT, "whole": True, "opaque": False}).native_whole
    assert not verdict(cover={**RIGHT, "whole": False, "opaque": False}).native_whole
    assert not verdict().native_whole


@pytest.mark.parametrize(("count", "is_enough"), [(0, True), (5, True), (6, False)])
def test_too_small_a_share_of_native_is_a_problem(count: int, is_enough: bool) -> None:
    part, whole = {**RIGHT, "whole": False}, {**RIGHT, "whole": True}
    verdicts = [verdict(cover=part)] * count + [verdict(cover=whole)] * (100 - count)
    quantised = Verdict(recipes()["resnet"], {"operators": {"QLinearConv": 1}}, {})
    verdicts += [quantised] * 50
    assert native_share(verdicts) == (100 - count, 100)
    problems = share_problems(verdicts)
    assert (problems == ()) == is_enough
    if not is_enough:
        assert problems[0].startswith(
            "native runs 94 of 100 models of floats whole, expected 95 %; not whole: resnet"
        )


def test_the_page_gives_a_row_for_each_model_and_reasons() -> None:
    cover = {**RIGHT, "calls": 3, "covered": 2, "refused": {"If": 1}}
    refused = {
        "status": "refused",
        "message": "native cannot compile this: has a | in /usr/lib/python/x.py\nand more",
    }
    page = models_page(
        [verdict(native=refused, onnxruntime=refused, cover=cover, reference={"status": "skipped"})]
    )
    row = next(line for line in page.splitlines() if line.startswith("| resnet "))
    assert "| no | no |  |  | - |  | 66 % | native: no kernel for If; onnxruntime: has a / in ... |" in row
    assert "## Image classification" in page
    assert "* Native runs 0 of 1 models of floats whole (0 %)." in page


def test_reasons_are_short() -> None:
    assert len(short_reason("word " * 100)) <= 110
    assert short_reason("\n  first at 0x7f3a\nsecond") == "first at ..."
