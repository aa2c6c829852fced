"""Sequences: what runs, in which order, and why."""

from __future__ import annotations

import pytest
from tests.transform_passes import AppendRelu, add_abs, named, program

from intarsia.support.errors import UsageError
from intarsia.transform import (
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
            "outer:\n  inner:\n    AppendRelu(times=2)\n  add_abs()"
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
