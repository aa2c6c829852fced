"""Pattern tables of toolchains."""

from __future__ import annotations

import pytest

from intarsia.ir.pattern import is_op, wildcard
from intarsia.op.pattern_table import (
    CompositePattern,
    composite_name,
    composite_toolchain,
    holding_pattern_table,
    pattern_table,
    register_pattern_table,
)
from intarsia.support.errors import UsageError

ROW = CompositePattern("relu", is_op("Relu")(wildcard()))


def test_a_toolchain_without_a_table_has_an_empty_one() -> None:
    assert pattern_table("onnxruntime") == ()


def test_tables_are_found_by_name() -> None:
    with holding_pattern_table("acme", (ROW,)):
        assert pattern_table("acme") == (ROW,)
        with pytest.raises(UsageError, match="already registered"):
            register_pattern_table("acme", [])


def test_unknown_toolchains_are_errors() -> None:
    with pytest.raises(UsageError, match="unknown toolchain 'nobody'"):
        pattern_table("nobody")


def test_names_of_composites_say_whose_they_are() -> None:
    name = composite_name("acme", "conv.relu")
    assert name == "acme.conv.relu"
    assert composite_toolchain(name) == "acme"
    assert composite_toolchain("relu") is None
