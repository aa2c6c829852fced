"""ONNX's backend node tests, compiled with default schedules."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
from tests.backend.cases import Case, onnx_cases
from tests.default_schedules import Array, run_scheduled
from tests.te_cases import Tensors, case_function, case_operators, tensors_of

from intarsia.native.dag import ComputeDAG
from intarsia.native.machine.isa import Isa
from intarsia.native.te import PlaceholderOp
from intarsia.native.te.operators import NotCoveredError, compute_rules
from intarsia.support.errors import UnsupportedModelError


@pytest.fixture(scope="module")
def covered() -> list[Case]:
    known = set(compute_rules())
    return [case for case in onnx_cases(("node",)) if case_operators(case) <= known]


@pytest.mark.slow
def test_all_cases(covered: list[Case]) -> None:
    assert compiled_rightly(covered) > 900


def compiled_rightly(cases: Iterable[Case]) -> int:
    """How many cases were compiled; fails at the first that computes something else."""
    count = 0
    for case in cases:
        made = _tensors(case)
        if made is None:
            continue
        dag = ComputeDAG(made.outputs)
        feeds = {name: np.array(value, order="C") for name, value in made.feeds.items()}
        names = [tensor.buffer.name for tensor in dag.outputs]
        found = dict(zip(names, run_scheduled(dag, feeds, Isa.host(), threads=2), strict=True))
        for tensor, wanted in zip(made.outputs, case.data_sets[0][1], strict=True):
            _compare(case.name, found[tensor.buffer.name], np.asarray(wanted))
        count += 1
    return count


def _tensors(case: Case) -> Tensors | None:
    """The case as tensor expressions, None if it is not of computed tensors that rules cover."""
    inputs = case.data_sets[0][0]
    if not all(isinstance(value, np.ndarray | np.generic) for value in inputs):
        return None
    try:
        made = tensors_of(*case_function(case, [np.asarray(value) for value in inputs]))
    except (NotCoveredError, UnsupportedModelError):
        return None
    is_computed = all(not isinstance(tensor.op, PlaceholderOp) for tensor in made.outputs)
    return made if made.outputs and is_computed else None


def _compare(name: str, found: Array, wanted: Array) -> None:
    if found.dtype.kind in "biu" and found.dtype == wanted.dtype:
        np.testing.assert_allclose(found, wanted, atol=1 if "quantize" in name else 0, err_msg=name)
        return
    wide, exact = found.astype(np.float64), wanted.astype(np.float64)
    np.testing.assert_allclose(wide, exact, rtol=1e-2, atol=1e-3, err_msg=name)
