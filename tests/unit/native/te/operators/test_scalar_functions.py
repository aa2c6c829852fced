"""Errors of functions that are composed of others."""

from __future__ import annotations

import numpy as np
import pytest
from tests.compute_rule_checks import rule_call
from tests.default_schedules import run_scheduled
from tests.emitted_kernels import x86_sets

from intarsia.native.dag import ComputeDAG
from intarsia.native.machine.isa import Isa
from intarsia.native.te.operators import compute, compute_call_of

SETS = x86_sets()


@pytest.mark.parametrize("isa", SETS.values(), ids=SETS)
def test_softplus_keeps_its_digits(isa: Isa) -> None:
    random = np.random.default_rng(11)
    x = np.concatenate(
        [
            random.uniform(-86, 90, 20_000),
            random.standard_normal(20_000) * np.exp2(random.integers(-20, 5, 20_000)),
            [0.0, -0.0, np.inf, -np.inf, np.nan, -3e38, 3e38, 1e-30, -1e-30],
        ]
    ).astype(np.float32)
    dag = ComputeDAG(compute(compute_call_of(rule_call("Softplus", [x]), "t")))
    (values,) = run_scheduled(dag, {"t.x0": x}, isa)
    with np.errstate(invalid="ignore"):
        expected = np.logaddexp(0.0, x.astype(np.float64))
    np.testing.assert_allclose(values, expected, rtol=5e-7, atol=1e-37)
