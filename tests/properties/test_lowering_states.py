"""Whatever legal steps are taken, a state computes what its DAG says."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.loop_evaluator import run_prim_func
from tests.native_workloads import WORKLOADS
from tests.properties.lowering_programs import HARD
from tests.properties.random_histories import histories

from intarsia.ir import GlobalVar, IRModule, PrimFunc
from intarsia.ir.verify import verify
from intarsia.native.dag import ComputeDAG
from intarsia.native.loop_state import LoopState
from intarsia.native.lowering import infer_bound, lower, lower_naive

DAGS = {name: ComputeDAG(make()) for name, make in (WORKLOADS | HARD).items()}
STATES = st.sampled_from(sorted(DAGS)).flatmap(lambda name: histories(DAGS[name], max_steps=20))


@pytest.mark.slow
@settings(max_examples=examples(30), deadline=None, suppress_health_check=list(HealthCheck))
@given(STATES, st.integers(0, 3))
def test_every_history_computes_the_same(state: LoopState, seed: int) -> None:
    check_results(state, seed)


@pytest.mark.slow  # some minutes: the more histories, the rarer what is found
@pytest.mark.parametrize("name", sorted(DAGS))
@settings(max_examples=examples(15), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data(), st.integers(0, 3))
def test_many_histories_compute_the_same(name: str, data: st.DataObject, seed: int) -> None:
    check_results(data.draw(histories(DAGS[name], max_steps=24)), seed)


@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(STATES)
def test_bounds_are_found_for_every_loop_and_stay(state: LoopState) -> None:
    found = infer_bound(state.initial_dag, state)
    assert "None" not in str(found)
    assert infer_bound(found.initial_dag, found) == found
    assert lower(found.initial_dag, found) == lower(state.initial_dag, state)


def check_results(state: LoopState, seed: int) -> None:
    """A state writes what the loops as declared write, whatever the order of loops that are not serial."""
    dag = state.initial_dag
    function = lower(dag, state)
    verify(IRModule({GlobalVar("main"): function}))
    inputs = arrays(dag, seed)
    expected = results(lower_naive(dag.outputs), inputs)
    for order in (range, lambda count: reversed(range(count))):
        for name, found in results(function, inputs, order).items():
            np.testing.assert_allclose(found, expected[name], rtol=2e-5, atol=1e-5, err_msg=str(state))


def arrays(dag: ComputeDAG, seed: int) -> dict[str, npt.NDArray[Any]]:
    """Small whole numbers, whose sums are exact in any order."""
    rng = np.random.default_rng(seed)
    return {
        tensor.buffer.name: rng.integers(-3, 4, tensor.shape).astype(tensor.dtype.numpy)
        for tensor in dag.placeholders
    }


def results(
    function: PrimFunc, inputs: dict[str, npt.NDArray[Any]], order: Any = range
) -> dict[str, npt.NDArray[Any]]:
    """What a function writes; every element that it reads must have been written."""
    given = {param.name for param in function.params} & inputs.keys()
    made = {p.name: np.zeros(p.shape, p.dtype.numpy) for p in function.params if p.name not in given}
    run_prim_func(function, {**{name: inputs[name] for name in given}, **made}, order=order)
    return made
