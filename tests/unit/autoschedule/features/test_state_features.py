"""Features of states, also of those that cannot be lowered."""

from dataclasses import replace

import numpy as np
from tests.native_workloads import matmul

from intarsia.autoschedule.features import (
    FeatureOptions,
    Machine,
    feature_names,
    per_store_features,
    state_features,
)
from intarsia.autoschedule.task import HardwareParams, SearchTask
from intarsia.native.dag import ComputeDAG
from intarsia.native.loop_state import LoopState
from intarsia.native.loop_state.layout_rewrite import LayoutRewriteOption
from intarsia.native.lowering import lower
from intarsia.native.schedule import with_state
from intarsia.target import Target

DAG = ComputeDAG(matmul())
TASK = replace(
    SearchTask.of_dag(DAG, Target("cpu -toolchain=native"), HardwareParams(4)),
    layout_rewrite_option=LayoutRewriteOption.NO_REWRITE,
)


def test_those_of_the_loop_function() -> None:
    state = LoopState.initial(DAG).split("C", "i", [4])
    assert np.array_equal(state_features(TASK, state), per_store_features(lower(DAG, state), TASK.hardware))


def test_those_of_packing_where_the_task_packs() -> None:
    task = replace(TASK, layout_rewrite_option=LayoutRewriteOption.INSERT_TRANSFORM_STAGE)
    state = LoopState.initial(DAG).split("C", "j", [4]).reorder("C", ["i", "j.0", "k", "j.1"])
    rows = state_features(task, state)
    made = with_state(DAG, state, task.layout_rewrite_option)
    assert np.array_equal(rows, per_store_features(made.lowered(), TASK.hardware))
    assert len(rows) == len(state_features(TASK, state)) + 1


def test_a_state_that_cannot_be_lowered_has_zeros() -> None:
    state = LoopState.initial(DAG).split("C", "i", [None])
    rows = state_features(TASK, state)
    assert rows.shape == (1, len(feature_names()))
    assert not rows.any()


def test_the_features_of_a_machine_are_a_choice() -> None:
    options = FeatureOptions(machine=Machine(32, 16, 32768, 524288, 4))
    rows = state_features(TASK, LoopState.initial(DAG), options)
    assert rows.shape == (1, len(options.names))
    assert len(options.names) == 174
