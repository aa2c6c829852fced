"""Passes and pipelines by name."""

from __future__ import annotations

import pytest
from tests.transform_passes import AppendRelu, add_abs

from intarsia.support.errors import UsageError
from intarsia.transform import (
    Sequential,
    get_pass,
    load_pass_sequence,
    pipeline_names,
    register_pipeline,
)
from intarsia.transform.pass_registry import holding_pass


class TestRegistry:
    def test_by_name_with_options(self) -> None:
        with holding_pass("AppendRelu", AppendRelu):
            assert get_pass("AppendRelu", times=3) == AppendRelu(3)

    def test_unknown(self) -> None:
        with pytest.raises(UsageError, match="unknown pass 'InferTypes'") as caught:
            get_pass("InferTypes")
        assert "InferType" in caught.value.help

    def test_wrong_option(self) -> None:
        with holding_pass("AppendRelu", AppendRelu), pytest.raises(UsageError, match="cannot be made with"):
            get_pass("AppendRelu", count=3)

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
        assert str(found) == "test.two_relus:\n  AppendRelu(times=2)"
        with pytest.raises(UsageError, match=r"unknown pipeline 'test.two_relu'") as caught:
            load_pass_sequence("test.two_relu")
        assert "test.two_relus" in caught.value.help
