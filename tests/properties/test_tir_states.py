"""Passes on loop functions as schedules lower to them."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.native_workloads import WORKLOADS
from tests.properties.lowering_programs import HARD
from tests.properties.random_histories import histories
from tests.tir_checks import checked

from intarsia.native.dag import ComputeDAG
from intarsia.native.loop_state import LoopState
from intarsia.native.lowering import lower
from intarsia.native.tir import LoopPartition, RegisterPromotion, VectorizeLoop, default_tir
from intarsia.transform import Pass

DAGS = {name: ComputeDAG(make()) for name, make in (WORKLOADS | HARD).items()}
STATES = st.sampled_from(sorted(DAGS)).flatmap(lambda name: histories(DAGS[name], max_steps=20))
PASSES: tuple[Pass, ...] = (LoopPartition(), VectorizeLoop(), RegisterPromotion(32, 16), default_tir(32, 16))


@settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
@given(STATES, st.sampled_from(PASSES), st.integers(0, 3))
def test_a_lowered_state_stays_the_same(state: LoopState, made: Pass, seed: int) -> None:
    checked(made, lower(state.initial_dag, state), seed, is_idempotent=False)
