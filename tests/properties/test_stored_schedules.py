"""A schedule log gives back any history, to any DAG that computes the same."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.native_workloads import WORKLOADS
from tests.properties.random_histories import histories

from intarsia.native.dag import ComputeDAG
from intarsia.native.loop_state import LoopState
from intarsia.native.lowering import infer_bound
from intarsia.native.schedule import ScheduleLog
from intarsia.support.errors import UsageError

DAGS = {name: ComputeDAG(workload()) for name, workload in WORKLOADS.items()}
NAMES = st.sampled_from(sorted(DAGS))
NAMED_STATES = NAMES.flatmap(lambda name: st.tuples(st.just(name), histories(DAGS[name], max_steps=12)))


def is_program(state: LoopState) -> bool:
    """Whether each stage is where those that read it find it."""
    try:
        infer_bound(state.initial_dag, state)
    except UsageError:
        return False
    return True


@settings(max_examples=examples(100), deadline=None)
@given(NAMED_STATES)
def test_a_log_gives_back_the_state(named: tuple[str, LoopState]) -> None:
    name, state = named
    log = ScheduleLog.from_text(ScheduleLog.of_states([state]).to_text(), "here")
    assert log.digest == ScheduleLog.of_states([state]).digest
    again = log.lookup(ComputeDAG(WORKLOADS[name]()))
    assert (None if again is None else again.text) == (state.text if is_program(state) else None)


@settings(max_examples=examples(30), deadline=None)
@given(st.lists(NAMED_STATES, max_size=4))
def test_the_order_of_states_does_not_matter(named: list[tuple[str, LoopState]]) -> None:
    states = list(dict(named).values())
    assert ScheduleLog.of_states(states) == ScheduleLog.of_states(reversed(states))
    assert len(ScheduleLog.of_states(states)) == len(states)
