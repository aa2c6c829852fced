"""Error bounds: facts on programs, by which their results are judged, and nobody else's."""

from __future__ import annotations

from math import inf, nan

import numpy as np
import pytest
from tests.unit.measure.quick_testbed import small_program

from intarsia.ir import Attrs, with_module_fields
from intarsia.ir.parser import parse_module
from intarsia.ir.printer import print_module
from intarsia.measure.judge.accuracy import bounded, error_bound, head_of_text, with_error_bound
from intarsia.measure.judge.gate import Gate
from intarsia.measure.judge.tolerance import EXACT, Tolerance
from intarsia.support.errors import UsageError


def test_the_bound_goes_with_the_program_and_its_text() -> None:
    mod = with_error_bound(small_program(), 0.01)
    printed = print_module(mod)
    assert error_bound(parse_module(printed.text, printed.constants)) == 0.01
    assert error_bound(head_of_text(printed.text)) == 0.01


def test_other_programs_have_none() -> None:
    named = with_module_fields(small_program(), attrs=Attrs({"name": "error_bound=1"}))
    assert error_bound(named) is None
    assert error_bound(head_of_text(str(named))) is None
    assert error_bound(head_of_text("")) is None


def test_the_smaller_bound_holds() -> None:
    first = with_error_bound(small_program(), 0.01)
    assert with_error_bound(first, 0.1) is first
    assert error_bound(with_error_bound(first, 0.001)) == 0.001


@pytest.mark.parametrize("bound", [0.0, -0.1, inf, nan])
def test_a_bound_is_a_positive_number(bound: float) -> None:
    with pytest.raises(UsageError, match="expected a positive number"):
        with_error_bound(small_program(), bound)


def gate() -> Gate:
    floats, integers = np.array([1, -4, 0.5], np.float32), np.array([3, 5])
    return Gate.by_tolerance(("a", "b"), (floats, integers), (Tolerance(rtol=1e-6), EXACT), "known")


@pytest.mark.parametrize(("error", "passes"), [(0.039, True), (0.041, False)])
def test_errors_are_relative_to_the_largest_value_of_the_output(error: float, passes: bool) -> None:
    floats, integers = gate().expected
    wrong = floats + np.array([0, 0, error], np.float32)
    assert not gate().check([wrong, integers]).passed
    assert bounded(gate(), 0.01).check([wrong, integers]).passed == passes


def test_integers_must_be_what_they_were() -> None:
    floats, integers = gate().expected
    assert not bounded(gate(), 1.0).check([floats, integers + 1]).passed


def test_without_a_bound_a_gate_is_what_it_was() -> None:
    before = gate()
    assert bounded(before, None) is before
