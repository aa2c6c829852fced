import pickle

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.native_workloads import WORKLOADS
from tests.properties.random_histories import align_storage, histories
from tests.python_schedule import run_python_code, shape_of

from intarsia.native.dag import ComputeDAG
from intarsia.native.loop_state import LoopState, print_python_code_from_state
from intarsia.native.loop_state.record import (
    Record,
    RecordResult,
    RecordTask,
    record_from_line,
    record_to_line,
)
from intarsia.native.loop_state.stage import Stage

DAGS = {name: ComputeDAG(workload()) for name, workload in WORKLOADS.items()}
STATES = st.sampled_from(sorted(DAGS)).flatmap(
    lambda name: histories(DAGS[name], max_steps=20, more_proposals=(align_storage,))
)


@settings(max_examples=examples(150), deadline=None)
@given(STATES)
def test_a_state_rebuilt_from_its_logged_steps_is_the_state(state: LoopState) -> None:
    record = Record(RecordTask("key", "llvm"), state.transform_steps, RecordResult((0.5,), 0, 1.0, 7))
    again = record_from_line(record_to_line(record))
    assert again == record
    rebuilt = LoopState.replay(state.initial_dag, again.steps)
    assert (rebuilt, hash(rebuilt), str(rebuilt)) == (state, hash(state), str(state))
    assert rebuilt.attach_map == state.attach_map
    assert [stage.iters for stage in rebuilt.stages] == [stage.iters for stage in state.stages]
    assert str(rebuilt.current_dag) == str(state.current_dag)


@settings(max_examples=examples(100), deadline=None)
@given(STATES)
def test_a_state_fits_its_dag(state: LoopState) -> None:
    assert [stage.op for stage in state.stages] == list(state.current_dag.ops)
    assert state.current_dag.outputs[0].buffer == state.initial_dag.outputs[0].buffer
    assert state.concrete
    for stage_id, (target, loop) in state.attach_map.positions.items():
        assert loop < len(state.stages[target].iters)
        assert stage_id in state.attach_map.attached[target, loop]
    for stage in state.stages:
        names = [each.name for each in stage.iters]
        assert len(set(names)) == len(names)
        made = {each for relation in stage.relations for each in relation.names}
        assert set(names) <= made | {each.name for each in Stage.of(stage.op).iters}


@settings(max_examples=examples(40), deadline=None)
@given(STATES)
def test_a_pickled_state_is_the_same_state(state: LoopState) -> None:
    again = pickle.loads(pickle.dumps(state))
    assert again == state
    assert again.transform_steps == state.transform_steps
    assert again.attach_map == state.attach_map
    assert again.current_dag.ops == tuple(stage.op for stage in again.stages)


@settings(max_examples=examples(150), deadline=None)
@given(STATES)
def test_running_the_python_code_of_a_history_gives_its_state(state: LoopState) -> None:
    made = run_python_code(state.initial_dag, print_python_code_from_state(state))
    assert shape_of(made) == shape_of(state)


@settings(max_examples=examples(60), deadline=None)
@given(STATES)
def test_histories_print_as_python(state: LoopState) -> None:
    text = print_python_code_from_state(state)
    compile(text, "schedule", "exec")
    assert text.count(".compute_at(") == sum(step.code == "CA" for step in state.transform_steps)
