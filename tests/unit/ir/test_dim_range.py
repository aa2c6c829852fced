"""Ranges of symbolic dimensions."""

from __future__ import annotations

import pytest

from intarsia.ir import DimRange, IRModule, dim_ranges, with_dim_ranges
from intarsia.ir.parser import parse_module
from intarsia.ir.printer import print_module

TEXT = "def @main(%x: Tensor[(batch, 3), float32]) { Relu(%x) }"


def program() -> IRModule:
    return parse_module(TEXT)


def test_sizes_of_a_range() -> None:
    assert 1 in DimRange(1, 8)
    assert 8 in DimRange(1, 8)
    assert 9 not in DimRange(1, 8)
    assert str(DimRange(1, 8)) == "1 to 8"


@pytest.mark.parametrize(("low", "high"), [(2, 1), (-1, 3)])
def test_an_empty_range_is_refused(low: int, high: int) -> None:
    with pytest.raises(ValueError, match="has no size"):
        DimRange(low, high)


def test_a_program_declares_ranges_and_prints_them() -> None:
    assert dim_ranges(program()["main"]) == {}
    declared = with_dim_ranges(program(), {"batch": DimRange(1, 8)})
    assert dim_ranges(declared["main"]) == {"batch": DimRange(1, 8)}
    printed = print_module(declared)
    assert dim_ranges(parse_module(printed.text, printed.constants)["main"]) == {"batch": DimRange(1, 8)}


def test_no_ranges_change_nothing() -> None:
    mod = program()
    assert with_dim_ranges(mod, {}) is mod
