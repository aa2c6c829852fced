"""Schedules as calls on stages."""

from __future__ import annotations

import pytest
from tests.python_schedule import shape_of

from intarsia.native import te
from intarsia.native.dag import ComputeDAG
from intarsia.native.loop_state import (
    IllegalStepError,
    LoopState,
    Schedule,
    print_python_code_from_state,
)
from intarsia.support.errors import UsageError


def product() -> ComputeDAG:
    a, b = te.placeholder((64, 32), name="A"), te.placeholder((32, 48), name="B")
    k = te.reduce_axis(32, "k")
    c = te.compute((64, 48), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    d = te.compute((64, 48), lambda i, j: te.tanh(c[i, j]), name="D")
    return ComputeDAG((a, b, d))


def test_calls_are_steps_of_a_state() -> None:
    dag = product()
    schedule = Schedule(dag)
    stage = schedule["C"]
    (i, j), (k,) = schedule.tensor("C").op.axis, schedule.tensor("C").op.reduce_axis
    i_o, i_i = stage.split(i, factor=8)
    j_o, j_i = stage.split(j, nparts=3)
    stage.reorder(i_o, j_o, k, i_i, j_i)
    stage.parallel(stage.fuse(i_o, j_o))
    stage.vectorize(j_i)
    stage.unroll(i_i)
    state = LoopState.initial(dag).split("C", "i", [8]).split("C", "j", [3], inner_to_outer=False)
    state = state.reorder("C", ["i.0", "j.0", "k", "i.1", "j.1"]).fuse("C", ["i.0", "j.0"])
    state = state.parallel("C", "i.0@j.0@").vectorize("C", "j.1").unroll("C", "i.1")
    assert str(schedule.state) == str(state)


def test_tensors_of_the_computation_name_stages() -> None:
    dag = product()
    schedule = Schedule(dag)
    (result,) = dag.outputs
    i, _ = schedule.tensor("D").op.axis
    schedule[result].parallel(i)
    schedule["C"].compute_at(schedule[result], i)
    assert str(schedule.state) == str(LoopState.initial(dag).parallel("D", "i").compute_at("C", "D", "i"))


def test_the_printed_code_of_a_state_runs() -> None:
    dag = product()
    state = LoopState.initial(dag).cache_write("D", "local").split("D", "i", [4, 4])
    state = (
        state.compute_at("D.local", "D", "i.1")
        .rfactor("C", "k", 2)
        .pragma("D", "i.0", "auto_unroll_max_step$16")
    )
    schedule = Schedule(dag)
    exec(print_python_code_from_state(state), schedule.names())
    assert shape_of(schedule.state) == shape_of(state)


def test_a_schedule_goes_on_from_a_state() -> None:
    state = LoopState.initial(product()).split("D", "i", [8])
    schedule = Schedule(state)
    schedule["D"].compute_root()
    copied = schedule.cache_read("A", "shared", ["C"])
    assert copied.name in [stage.op.name for stage in schedule.state.stages]
    assert len(copied.op.axis) == 2


def test_what_there_is_not() -> None:
    schedule = Schedule(product())
    with pytest.raises(UsageError, match="X"):
        schedule.tensor("X")
    with pytest.raises(UsageError, match=r"A has no axes: it is no te\.compute"):
        _ = schedule.tensor("A").op
    with pytest.raises(IllegalStepError, match="D"):
        schedule["D"].compute_inline()  # nothing reads it
