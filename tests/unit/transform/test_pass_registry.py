"""Passes and pipelines by name."""

from __future__ import annotations

from typing import Any

import pytest
from tests.transform_passes import AppendRelu, add_abs

from intarsia.support.errors import UsageError
from intarsia.transform import (
    Sequential,
    get_pass,
    load_pass_sequence,
    pipeline_names,
    register_pass,
    register_pipeline,
)
from intarsia.transform.pass_registry import holding_pass
from intarsia.transform.pipeline import holding_pipeline


class TestRegistry:
    def test_by_name_with_options(self) -> None:
        with holding_pass("AppendRelu", AppendRelu):
            assert get_pass("AppendRelu", times=3) == AppendRelu(3)

    def test_unknown(self) -> None:
        with pytest.raises(UsageError, match="unknown pass 'InferTypes'") as caught:
            get_pass("InferTypes")
        assert "InferType" in caught.value.help

    def test_wrong_option(self) -> None:
        with (
            holding_pass("AppendRelu", AppendRelu),
            pytest.raises(UsageError, match="cannot be made with") as caught,
        ):
            get_pass("AppendRelu", count=3)
        assert caught.value.help == "its options: times"

    def test_options_in_the_text(self) -> None:
        with holding_pass("AppendRelu", AppendRelu):
            assert get_pass("AppendRelu{times=3}") == AppendRelu(3)

    def test_only_passes_are_registered(self) -> None:
        with pytest.raises(UsageError, match="takes a pass or a class of passes, got 'print'"):
            register_pass(print)  # type: ignore[type-var]  # the mistake

    def test_a_pass_made_of_a_function_has_no_options(self) -> None:
        with (
            holding_pass("add_abs", add_abs),
            pytest.raises(UsageError, match="pass 'add_abs' has no options, got count"),
        ):
            get_pass("add_abs", count=3)

    def test_pipelines(self) -> None:
        @register_pipeline("test.two_relus")
        def two_relus() -> Sequential:
            return Sequential([AppendRelu(2)])

        assert "test.two_relus" in pipeline_names()
        found = load_pass_sequence("test.two_relus")
        assert str(found) == 'Sequential{name="test.two_relus", passes=[AppendRelu{times=2}]}'
        with pytest.raises(UsageError, match=r"unknown pipeline 'test.two_relu'") as caught:
            load_pass_sequence("test.two_relu")
        assert "test.two_relus" in caught.value.help

    def test_a_pipeline_that_is_shared_keeps_its_name(self) -> None:
        shared = Sequential([AppendRelu(2)], name="shared")
        with holding_pipeline("test.shared", lambda: shared):
            assert load_pass_sequence("test.shared").info.name == "test.shared"
        assert shared.info.name == "shared"

    def test_a_pipeline_needs_a_name(self) -> None:
        with pytest.raises(UsageError, match="a pipeline needs a name"):

            @register_pipeline  # type: ignore[arg-type]  # the mistake
            def nameless() -> Sequential:
                return Sequential([])

    def test_a_pipeline_is_a_sequence(self) -> None:
        made: Any = list  # the mistake
        with (
            holding_pipeline("test.list", made),
            pytest.raises(UsageError, match=r"pipeline 'test.list' made a value of type list"),
        ):
            load_pass_sequence("test.list")
