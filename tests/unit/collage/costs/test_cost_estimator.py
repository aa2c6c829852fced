"""Estimators by name."""

from __future__ import annotations

import pytest
from tests.mock_cost_estimator import MockCostEstimator

from intarsia.collage.candidates.cost import Cost
from intarsia.collage.costs.cost_estimator import COST_ESTIMATORS, Estimate
from intarsia.measure.measure_result import MeasureError
from intarsia.support.errors import UsageError


def test_estimators_are_found_by_name() -> None:
    mock = MockCostEstimator({"native": 1.0})
    with COST_ESTIMATORS.holding("mine", mock):
        assert COST_ESTIMATORS["mine"] is mock
        with pytest.raises(UsageError, match="unknown cost estimator 'min'") as caught:
            COST_ESTIMATORS["min"]
        assert caught.value.help == "did you mean mine?"
    assert "mine" not in COST_ESTIMATORS


def test_an_estimate_is_fine_unless_it_says_otherwise() -> None:
    found = Estimate(Cost.ZERO)
    assert (found.error, found.message, found.was_known) == (MeasureError.OK, "", False)
