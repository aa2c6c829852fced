"""Sequences: what runs, in which order, and why."""

from __future__ import annotations

import sys

import pytest
from tests.transform_passes import AppendRelu, add_abs, named, program

from intarsia.ir import IRModule
from intarsia.support.errors import UsageError
from intarsia.transform import (
    ApplyPassToFunction,
    PassContext,
    Sequential,
)
from intarsia.transform.pass_registry import holding_pass


class TestSequential:
    def test_runs_in_order(self) -> None:
        log: list[str] = []
        Sequential([named("a", log), named("b", log), named("c", log)])(program())
        assert log == ["a", "b", "c"]

    def test_the_result_of_one_is_the_input_of_the_next(self) -> None:
        after = Sequential([AppendRelu(), add_abs, AppendRelu(2)])(program())
        assert str(after).count("Relu") == 1 + 1 + 2 + 2

    def test_only_a_sequence_asks_for_the_level(self) -> None:
        log: list[str] = []
        item = named("high", log, opt_level=3)
        Sequential([item])(program())
        assert log == []
        item(program())
        assert log == ["high"]

    @pytest.mark.parametrize(
        ("settings", "ran"),
        [
            ({}, ["one", "two"]),
            ({"opt_level": 0}, []),
            ({"opt_level": 3}, ["one", "two", "three"]),
            ({"opt_level": 0, "required_pass": ["three"]}, ["three"]),
            ({"disabled_pass": ["two"]}, ["one"]),
            ({"opt_level": 3, "required_pass": ["two"], "disabled_pass": ["two"]}, ["one", "three"]),
        ],
    )
    def test_disabled_beats_required_beats_level(self, settings: dict[str, object], ran: list[str]) -> None:
        log: list[str] = []
        sequence = Sequential([named("one", log, 1), named("two", log, 2), named("three", log, 3)])
        with PassContext(**settings):  # type: ignore[arg-type]  # as the table says
            sequence(program())
            assert sequence.explain().running == tuple(ran)
        assert log == ran

    def test_nested_sequences(self) -> None:
        log: list[str] = []
        inner = Sequential([named("a", log), named("b", log, 3)], name="inner", opt_level=1)
        outer = Sequential([inner, named("c", log)])
        with PassContext(opt_level=0):
            outer(program())
        assert log == ["c"]
        with PassContext(opt_level=1):
            outer(program())
        assert log == ["c", "a", "c"]

    def test_required_passes_run_each_time_whatever_the_context_says(self) -> None:
        log: list[str] = []
        needed = named("needed", log, opt_level=4)
        with holding_pass("needed", needed), PassContext(disabled_pass=["needed"]):
            user = named("user", log, required=("needed",))
            Sequential([user, user])(program())
            assert log == ["needed", "user", "needed", "user"]
            user(program())
        assert log[4:] == ["user"]  # no sequence, no required passes

    def test_required_passes_bring_theirs(self) -> None:
        log: list[str] = []
        low, middle = named("low", log), named("middle", log, required=("low",))
        with holding_pass("low", low), holding_pass("middle", middle):
            Sequential([named("top", log, required=("middle",))])(program())
        assert log == ["low", "middle", "top"]

    def test_takes_instances(self) -> None:
        with pytest.raises(UsageError, match="an instance is needed: add parentheses"):
            Sequential([AppendRelu])  # type: ignore[list-item]  # the mistake

    def test_prints_what_is_in_it(self) -> None:
        inner = Sequential([AppendRelu(2)], name="inner")
        assert str(Sequential([inner, add_abs], name="outer")) == (
            'Sequential{name="outer", '
            'passes=[Sequential{name="inner", passes=[AppendRelu{times=2}]}, add_abs]}'
        )

    def test_explains_every_pass(self) -> None:
        log: list[str] = []
        with holding_pass("needed", named("needed", log, 9)):
            sequence = Sequential(
                [
                    named("user", log, 1, required=("needed",)),
                    named("off", log),
                    Sequential([named("high", log, 3), named("forced", log, 3)], name="inner"),
                    Sequential([named("never", log)], name="above", opt_level=4),
                ]
            )
            ctx = PassContext(required_pass=["forced"], disabled_pass=["off"])
            assert str(sequence.explain(ctx)) == (
                "run   needed    required by user\n"
                "run   user      level 1 <= 2\n"
                "skip  off       in disabled_pass\n"
                "run   inner     level 0 <= 2\n"
                "skip    high    level 3 > 2\n"
                "run     forced  in required_pass\n"
                "skip  above     level 4 > 2"
            )
            sequence(program(), ctx)
        assert log == ["needed", "user", "forced"]

    def test_explains_requirements_that_cannot_be_met(self) -> None:
        log: list[str] = []
        left, right = named("left", log, required=("right",)), named("right", log, required=("left",))
        with holding_pass("left", left), holding_pass("right", right):
            found = Sequential([left, named("user", log, required=("Nowhere",))]).explain()
        assert str(found) == (
            "skip  left     required by right, which cannot be met\n"
            "run   right    required by left\n"
            "run   left     level 0 <= 2\n"
            "skip  Nowhere  required by user, which cannot be met\n"
            "run   user     level 0 <= 2\n"
            "refused: right requires itself (left requires right requires left): "
            "remove one of the requirements\n"
            "refused: user requires Nowhere, which is not registered: register it, or check the name"
        )

    def test_explains_what_a_required_sequence_runs(self) -> None:
        log: list[str] = []
        inner = Sequential([named("low", log), named("high", log, 3)], name="inner")
        with holding_pass("inner", inner):
            sequence = Sequential([named("user", log, required=("inner",))])
            found = sequence.explain()
            sequence(program())
        assert [(item.name, item.depth) for item in found.passes if item.runs] == [
            ("inner", 0),
            ("low", 1),
            ("user", 0),
        ]
        assert log == ["low", "user"]

    def test_explains_names_that_mean_nothing_here(self) -> None:
        log: list[str] = []
        ctx = PassContext(disabled_pass=["needed", "usr"], required_pass=["user"])
        with holding_pass("needed", named("needed", log)):
            sequence = Sequential([named("user", log, required=("needed",))])
            assert str(sequence.explain(ctx)) == (
                "run   needed  required by user, stronger than disabled_pass\n"
                "run   user    in required_pass\n"
                "no such pass here: usr"
            )

    @pytest.mark.parametrize(
        ("passes", "message"),
        [
            (add_abs, "takes a list of passes, got"),
            ("tidy", "takes a list of passes, got 'tidy'"),
            (["InferType"], "a pass is needed: get_pass\\('InferType'\\)"),
            ([print], "becomes a pass by @module_pass"),
        ],
    )
    def test_what_is_no_list_of_passes(self, passes: object, message: str) -> None:
        with pytest.raises(UsageError, match=message):
            Sequential(passes)  # type: ignore[arg-type]  # the mistake


def python_calls(sequence: Sequential, mod: IRModule) -> int:
    """How many Python functions a run of the sequence calls."""
    count = 0

    def note(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(note)
    try:
        assert sequence(mod) is mod
    finally:
        sys.setprofile(None)
    return count


def test_passes_that_change_nothing_do_not_look_at_the_program() -> None:
    log: list[str] = []
    passes = [named("module", log), AppendRelu(0), ApplyPassToFunction(AppendRelu(), "none such")]
    sequence = Sequential(passes * 20)
    large = AppendRelu(2_000)(program())
    sequence(program())  # regular expressions are compiled once
    assert python_calls(sequence, large) < python_calls(sequence, program()) + 1_000


def test_nothing_is_no_pass() -> None:
    with pytest.raises(
        UsageError, match=r"a Sequential takes passes, got None \(a function that makes a pass"
    ):
        Sequential([None])  # type: ignore[list-item]  # the mistake
